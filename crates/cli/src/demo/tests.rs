//! The demo as callers find it.
