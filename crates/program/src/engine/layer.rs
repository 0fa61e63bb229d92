//! The layers of the sandbox, by name, so that a test can leave one out and see which attack gets through.

/// One layer. Each is proven by at least one attack of its own; see `attacks.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layer {
    Seccomp,
    Landlock,
}
