//! A request that is being worked on, and what it says meanwhile: in order, all of it before the answer.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::server::outlet::{Asks, Outgoing, Outlet, QUEUE};
use crate::server::{Answer, Handling};
use std::sync::Arc;

pub(crate) struct Running {
    future: Handling,
    outgoing: mpsc::Receiver<Outgoing>,
    answer: Option<Answer>,
}

/// What a running request does next.
#[derive(Debug)]
pub(crate) enum Step {
    Says(Outgoing),
    Answers(Answer),
    /// Nothing for this long.
    Silent,
}

impl Running {
    /// Starts it with the outlet that leads here.
    pub(crate) fn start(asks: Option<Arc<Asks>>, begin: impl FnOnce(Outlet) -> Handling) -> Self {
        let (sender, outgoing) = mpsc::channel(QUEUE);
        Self { future: begin(Outlet::new(sender, asks)), outgoing, answer: None }
    }

    pub(crate) async fn step(&mut self, patience: Duration) -> Step {
        if self.answer.is_none() {
            tokio::select! {
                biased;
                Some(said) = self.outgoing.recv() => return Step::Says(said),
                answer = &mut self.future => self.answer = Some(answer),
                () = tokio::time::sleep(patience) => return Step::Silent,
            }
        }
        // What was said in the same breath as the answer comes before it.
        if let Ok(said) = self.outgoing.try_recv() {
            return Step::Says(said);
        }
        match self.answer.take() {
            Some(answer) => Step::Answers(answer),
            None => Step::Silent,
        }
    }

    /// Gives it up. What it says in parting is that its questions need no answer any more.
    pub(crate) fn give_up(mut self) -> Vec<Outgoing> {
        while self.outgoing.try_recv().is_ok() {}
        drop(self.future);
        std::iter::from_fn(|| self.outgoing.try_recv().ok()).collect()
    }
}
