//! updates
