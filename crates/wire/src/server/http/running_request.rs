//! A request that is being worked on, and what it says meanwhile: in order, all of it before the answer.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::server::client_channel::{ClientChannel, OutgoingFrame, PendingClientRequests, QUEUE};
use crate::server::{ResponseFuture, RpcResult};
use std::sync::Arc;

pub(crate) struct RunningRequest {
    future: ResponseFuture,
    outgoing: mpsc::Receiver<OutgoingFrame>,
    answer: Option<RpcResult>,
}

/// What a running request does next.
#[derive(Debug)]
pub(crate) enum RunningRequestEvent {
    Outgoing(OutgoingFrame),
    Response(RpcResult),
    /// Nothing for this long.
    Idle,
}

impl RunningRequest {
    /// Starts it with the outlet that leads here.
    pub(crate) fn start(
        asks: Option<Arc<PendingClientRequests>>,
        begin: impl FnOnce(ClientChannel) -> ResponseFuture,
    ) -> Self {
        let (sender, outgoing) = mpsc::channel(QUEUE);
        Self { future: begin(ClientChannel::new(sender, asks)), outgoing, answer: None }
    }

    pub(crate) async fn step(&mut self, patience: Duration) -> RunningRequestEvent {
        if self.answer.is_none() {
            tokio::select! {
                biased;
                Some(said) = self.outgoing.recv() => return RunningRequestEvent::Outgoing(said),
                answer = &mut self.future => self.answer = Some(answer),
                () = tokio::time::sleep(patience) => return RunningRequestEvent::Idle,
            }
        }
        // What was said in the same breath as the answer comes before it.
        if let Ok(said) = self.outgoing.try_recv() {
            return RunningRequestEvent::Outgoing(said);
        }
        match self.answer.take() {
            Some(answer) => RunningRequestEvent::Response(answer),
            None => RunningRequestEvent::Idle,
        }
    }

    /// Gives it up. What it says in parting is that its questions need no answer any more.
    pub(crate) fn give_up(mut self) -> Vec<OutgoingFrame> {
        while self.outgoing.try_recv().is_ok() {}
        drop(self.future);
        std::iter::from_fn(|| self.outgoing.try_recv().ok()).collect()
    }
}
