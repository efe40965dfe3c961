//! The stores, from outside.

#[path = "store/homes.rs"]
mod homes;
#[path = "store/suite.rs"]
mod suite;
