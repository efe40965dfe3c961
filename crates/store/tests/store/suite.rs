//! The conformance suite over every store.

use throughline_store::Durability;
use throughline_store::testing::{agrees_with_model, conforms};

use crate::homes::{InFiles, InMemory, InSqlite};

#[tokio::test]
async fn memory_conforms() {
    conforms(&InMemory::default()).await;
}

#[tokio::test]
async fn files_conform() {
    conforms(&InFiles::new(Durability::PowerLoss)).await;
}

#[tokio::test]
async fn sqlite_conforms() {
    conforms(&InSqlite::new(Durability::PowerLoss)).await;
}

#[test]
fn memory_agrees_with_the_model() {
    agrees_with_model(InMemory::default, 200);
}

#[test]
fn files_agree_with_the_model() {
    agrees_with_model(|| InFiles::new(Durability::ProcessKill), 60);
}

#[test]
fn sqlite_agrees_with_the_model() {
    agrees_with_model(|| InSqlite::new(Durability::ProcessKill), 40);
}
