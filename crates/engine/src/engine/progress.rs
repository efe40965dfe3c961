//! What happened since the last swap, and where phases of the work end.

use throughline_transcript::message::Message;

use crate::live::Facts;
use crate::phase::{Phase, PhaseDetector};

/// Counts since the last swap, and the phase that ended.
#[derive(Debug)]
pub(super) struct Progress {
    turns: u32,
    tool_calls: u32,
    requests: u64,
    /// Runs only if the settings ask for it.
    detector: Option<PhaseDetector>,
    phase: Option<Phase>,
}

impl Progress {
    pub(super) fn new(requests: u64, finds_phases: bool) -> Self {
        Self {
            turns: 0,
            tool_calls: 0,
            requests,
            detector: finds_phases.then(PhaseDetector::default),
            phase: None,
        }
    }

    pub(super) fn turns(&self) -> u32 {
        self.turns
    }

    pub(super) fn tool_calls(&self) -> u32 {
        self.tool_calls
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// Looks for the end of a phase in a message, if the settings ask for it.
    pub(super) fn look_at(&mut self, message: &Message) {
        if let Some(detector) = &mut self.detector
            && let Some(phase) = detector.push(message)
        {
            self.phase = Some(phase);
        }
    }

    /// Looks at a stored message, which ends no phase now.
    pub(super) fn look_back_at(&mut self, message: &Message) {
        if let Some(detector) = &mut self.detector {
            detector.push(message);
        }
    }

    /// Begins or ends the search for phases. It begins with the messages that are there.
    pub(super) fn find_phases(&mut self, finds_phases: bool, messages: &[Message]) {
        match (finds_phases, &self.detector) {
            (true, None) => {
                self.detector = Some(PhaseDetector::default());
                for message in messages {
                    self.look_back_at(message);
                }
            }
            (false, Some(_)) => {
                self.detector = None;
                self.phase.take_if(|phase| *phase != Phase::Announced);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    pub(super) fn announce_phase(&mut self) {
        self.phase = Some(Phase::Announced);
    }

    pub(super) fn forget_phase(&mut self) {
        self.phase = None;
    }

    pub(super) fn count(&mut self, turns: u32, facts: Facts) {
        self.turns += turns;
        self.tool_calls += facts.tool_calls;
    }

    pub(super) fn count_request(&mut self) {
        self.requests += 1;
    }

    /// A trigger that counts has had its chance.
    pub(super) fn restart_triggers(&mut self) {
        self.phase = None;
        self.turns = 0;
        self.tool_calls = 0;
    }

    pub(super) fn swapped(&mut self) {
        self.turns = 0;
        self.tool_calls = 0;
        self.requests = 0;
    }

    pub(super) fn clear(&mut self) {
        self.swapped();
        if let Some(detector) = &mut self.detector {
            *detector = PhaseDetector::default();
        }
    }
}
