//! What the core needs from outside: background jobs, requests, and watchers to notify.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use throughline_engine::{BuildKind, EngineEvent, UpdateFailure, UpdateFailureClass};
use throughline_store::StoreError;
use tokio::task::JoinError;
use tokio::time::Instant;

use super::Actor;
use crate::core::{DraftJob, Effect, Effects, FinishedDraft, FinishedUpdate, UpdateJob, guarded};
use crate::event::SessionEvent;
use crate::hooks::{BeforeCompaction, Hooks, MadeBy, Verdict};
use crate::session::View;

/// A job that has ended.
pub(super) enum FinishedJob {
    Draft(FinishedDraft),
    Update(Box<FinishedUpdate>),
}

impl Actor {
    /// Does what the core needs.
    pub(super) async fn perform(&mut self, effects: Effects) {
        let mut effects = VecDeque::from_iter(effects);
        self.show();
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Draft(job) => self.start_draft(job),
                Effect::Update(job) => effects.extend(self.start_update(job)),
                Effect::Request(plan) => self.request(plan).await,
                Effect::Wait { at_most_ms } => {
                    self.wait_until = Some(Instant::now() + Duration::from_millis(at_most_ms));
                }
                Effect::Answer(caller, outcome) => {
                    // A swap counts when it is stored.
                    if let Err(error) = self.flush().await {
                        self.not_stored(&Arc::new(error));
                    }
                    let _ = caller.send(outcome);
                }
                Effect::Event { event, .. } => {
                    self.note_swap(&event);
                    self.tell(event);
                }
                // A request is sent only after a commit, whatever it is made with. An older memory is loaded where the
                // transcript is cut. What was spent is in the view.
                Effect::Adopted | Effect::Reload { .. } | Effect::Spent { .. } => {}
            }
        }
    }

    /// Shows the session as it is now. A caller sees what follows from its command before it gets its answer.
    fn show(&self) {
        self.view.send_replace(View::of(&self.core));
    }

    fn start_draft(&mut self, job: DraftJob) {
        match self.parts.hooks.clone() {
            None => drop(
                self.tasks
                    .spawn_blocking(move || FinishedJob::Draft(job.run())),
            ),
            Some(hooks) => {
                let ticket = job.order().ticket;
                self.tasks.spawn(async move {
                    let draft = hooked_draft(hooks.as_ref(), job);
                    FinishedJob::Draft(guarded(ticket, draft).await)
                });
            }
        }
    }

    fn start_update(&mut self, job: UpdateJob) -> Effects {
        let Some(compactor) = self.parts.compactor.clone() else {
            let now = self.parts.clock.now();
            let effects = self.core.updated(now, job.without_compactor());
            self.show();
            return effects;
        };
        let live = self.live(&job.order().live);
        let hooks = self.parts.hooks.clone();
        self.tasks.spawn(async move {
            let update = job.run(compactor, live, async |mut compacted| {
                if let (Some(hooks), Ok(memory)) = (hooks, &mut compacted.result) {
                    hooks.after_compaction(MadeBy::Model, memory).await;
                }
                compacted
            });
            FinishedJob::Update(Box::new(update.await))
        });
        Effects::default()
    }

    pub(super) async fn finished(&mut self, done: Result<FinishedJob, JoinError>) {
        let now = self.parts.clock.now();
        let effects = match done {
            Ok(FinishedJob::Draft(draft)) => self.core.drafted(now, draft),
            Ok(FinishedJob::Update(update)) => self.core.updated(now, *update),
            // Jobs do not panic; only the end of the session aborts them.
            Err(_) => return,
        };
        self.perform(effects).await;
    }

    /// Notes how long the pending request was held up by a swap.
    fn note_swap(&mut self, event: &SessionEvent) {
        if let SessionEvent::Engine(EngineEvent::Swapped {
            waited_ms,
            waited_for,
            ..
        }) = event
            && let Some(pending) = &mut self.pending
        {
            pending.has_swapped = true;
            if *waited_for == Some(BuildKind::Model) {
                pending.waited_for_model = Duration::from_millis(*waited_ms);
            }
        }
    }

    pub(super) fn not_stored(&self, error: &Arc<StoreError>) {
        tracing::warn!(%error, "changes of a session could not be stored");
        self.tell(SessionEvent::NotStored(Arc::clone(error)));
    }

    pub(super) fn tell(&self, event: SessionEvent) {
        tracing::debug!(session = %self.parts.writer.id(), ?event, "session");
        // There may be no watchers.
        let _ = self.events.send(event);
    }
}

async fn hooked_draft(hooks: &dyn Hooks, job: DraftJob) -> FinishedDraft {
    let order = job.order();
    let ticket = order.ticket;
    let failed = |class, message: String| {
        FinishedDraft::new(
            ticket,
            Err(UpdateFailure {
                class,
                message,
                retry_after_ms: None,
            }),
        )
    };
    let before = BeforeCompaction {
        messages: order.first..order.first + order.messages.len(),
        focus: order.focus.as_deref(),
        memory: order.prior.as_ref().map(|prior| &prior.memory),
        new: &order.messages,
    };
    let pins = match hooks.before_compaction(before).await {
        Verdict::Compact { keep } => keep,
        Verdict::Veto { reason } => return failed(UpdateFailureClass::Vetoed, reason),
    };
    let drafted = tokio::task::spawn_blocking(move || job.run()).await;
    let mut drafted =
        drafted.unwrap_or_else(|error| failed(UpdateFailureClass::Internal, error.to_string()));
    drafted.pins = pins;
    if let Ok(memory) = &mut drafted.result {
        hooks.after_compaction(MadeBy::Code, memory).await;
    }
    drafted
}
