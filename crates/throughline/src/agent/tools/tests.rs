//! How tools are shown.
