//! Attacks.

use super::Attacked;
use super::zygote::Zygote;
use crate::program::Unavailable;

#[derive(Debug, Clone, Copy)]
pub(super) enum Clock {
    Wall,
    None,
}

pub(super) async fn all(_zygote: &Zygote, _clock: Clock) -> Vec<Attacked> {
    Vec::new()
}

pub(super) fn verdict(_attacked: &[Attacked]) -> Option<Unavailable> {
    None
}
