//! A request in flight, over either transport, and every message up to its answer.

use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::http::{Events, Reply};
use super::message::Message;
use super::stdio::Line;

/// A request that was sent. Over HTTP, dropping it closes its connection.
pub struct Call {
    pub id: Value,
    pub(super) channel: ReplyChannel,
}

pub(super) enum ReplyChannel {
    Line(Line),
    Pending(AbortOnDropHandle<Reply>),
    Events(Box<Events>),
    Over,
}

/// The messages between a request and its answer, and the answer.
#[derive(Debug)]
pub struct Exchange {
    pub messages: Vec<Message>,
    pub answer: Message,
}

impl Call {
    /// Returns the next message, or `None` when no more can arrive.
    pub async fn next(&mut self) -> Option<Message> {
        if let ReplyChannel::Pending(reply) = &mut self.channel {
            let reply = super::within_timeout("an HTTP response", reply).await.unwrap();
            if !reply.is_stream() {
                self.channel = ReplyChannel::Over;
                return reply.message().await;
            }
            self.channel = ReplyChannel::Events(Box::new(reply.events()));
        }
        match &mut self.channel {
            ReplyChannel::Line(line) => line.try_next().await,
            ReplyChannel::Events(events) => events.next_message().await.map(|(_, message)| message),
            ReplyChannel::Pending(_) | ReplyChannel::Over => None,
        }
    }

    /// Reads up to the answer. A stream must end with it.
    pub async fn finish(mut self) -> Exchange {
        let mut messages = Vec::new();
        loop {
            let next = self.next().await;
            let message = next.unwrap_or_else(|| panic!("no answer, only {messages:?}"));
            if message.is_answer() && message.id() == &self.id {
                if !matches!(self.channel, ReplyChannel::Line(_)) {
                    assert_eq!(
                        self.next().await.map(|message| message.text),
                        None,
                        "a message after the answer"
                    );
                }
                return Exchange { messages, answer: message };
            }
            messages.push(message);
        }
    }

    /// Returns the reply itself (HTTP only).
    pub async fn reply(self) -> Reply {
        match self.channel {
            ReplyChannel::Pending(reply) => super::within_timeout("an HTTP response", reply).await.unwrap(),
            _ => panic!("only HTTP has replies"),
        }
    }
}

impl Exchange {
    /// Returns the params of all notifications of one method.
    pub fn notifications(&self, method: &str) -> Vec<&Value> {
        self.messages.iter().filter(|message| message.method() == Some(method)).map(Message::params).collect()
    }
}
