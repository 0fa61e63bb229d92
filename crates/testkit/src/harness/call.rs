//! A request under way, whatever it went over, and everything that is said until its answer.

use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::http::{Events, Reply};
use super::message::Message;
use super::stdio::Line;

/// A request that was sent. Over HTTP, dropping it closes its connection.
pub struct Call {
    pub id: Value,
    pub(super) way: Way,
}

pub(super) enum Way {
    Line(Line),
    Pending(AbortOnDropHandle<Reply>),
    Events(Box<Events>),
    Over,
}

/// All that was said between a request and its answer, and the answer.
#[derive(Debug)]
pub struct Exchange {
    pub said: Vec<Message>,
    pub answer: Message,
}

impl Call {
    /// The next message; nothing once no more can come.
    pub async fn next(&mut self) -> Option<Message> {
        if let Way::Pending(reply) = &mut self.way {
            let reply = super::within_timeout("an HTTP response", reply).await.unwrap();
            if !reply.is_stream() {
                self.way = Way::Over;
                return reply.message().await;
            }
            self.way = Way::Events(Box::new(reply.events()));
        }
        match &mut self.way {
            Way::Line(line) => line.try_next().await,
            Way::Events(events) => events.next_message().await.map(|(_, message)| message),
            Way::Pending(_) | Way::Over => None,
        }
    }

    /// Reads up to the answer. A stream must end with it.
    pub async fn finish(mut self) -> Exchange {
        let mut said = Vec::new();
        loop {
            let next = self.next().await;
            let message = next.unwrap_or_else(|| panic!("no answer, but {said:?}"));
            if message.is_answer() && message.id() == &self.id {
                if !matches!(self.way, Way::Line(_)) {
                    assert_eq!(self.next().await.map(|message| message.text), None, "said after the answer");
                }
                return Exchange { said, answer: message };
            }
            said.push(message);
        }
    }

    /// The reply itself (HTTP only).
    pub async fn reply(self) -> Reply {
        match self.way {
            Way::Pending(reply) => super::within_timeout("an HTTP response", reply).await.unwrap(),
            _ => panic!("only HTTP has replies"),
        }
    }
}

impl Exchange {
    /// The notifications of one method.
    pub fn notifications(&self, method: &str) -> Vec<&Value> {
        self.said.iter().filter(|message| message.method() == Some(method)).map(Message::params).collect()
    }
}
