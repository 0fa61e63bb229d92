//! Feeds the journal with the events of the yard. Without readers this costs calls nothing: events
//! stay in the hub's channel, as many as fit, and are read when a reader attaches.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use toolyard_hub::{StderrLine, Yard, YardEvent};

use super::{Journal, JournalEvent, LogEntry};

/// How long events are collected before they are recorded, so that a burst does not cause one
/// wakeup per event.
const GATHER: Duration = Duration::from_millis(5);

/// Maximum time that a flush waits for the journal.
const LONGEST_SETTLE: Duration = Duration::from_secs(2);

/// An attached reader. The journal is kept up to date while there is at least one.
#[derive(Debug)]
pub(in crate::control) struct JournalReader(Arc<Journal>);

impl Drop for JournalReader {
    fn drop(&mut self) {
        self.0.readers.send_modify(|readers| *readers -= 1);
    }
}

/// The channels that feed the journal.
struct JournalInputs {
    events: broadcast::Receiver<Arc<YardEvent>>,
    stderr: broadcast::Receiver<Arc<StderrLine>>,
    log: Option<broadcast::Receiver<Arc<LogEntry>>>,
}

/// Whether events were lost while readers were attached or while none was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Overrun,
    Unattended,
}

impl Journal {
    /// Attaches a reader. All earlier events are recorded when this returns.
    pub(in crate::control) async fn attach(self: &Arc<Self>) -> JournalReader {
        self.readers.send_modify(|readers| *readers += 1);
        let reader = JournalReader(Arc::clone(self));
        // An error means that the process is ending.
        let _ = self.current.subscribe().wait_for(|current| *current).await;
        reader
    }

    /// Waits until all events before this call are recorded. A reader must be attached.
    pub(in crate::control) async fn flush(&self) {
        let mut request = 0;
        self.flush_requests.send_modify(|requests| {
            *requests += 1;
            request = *requests;
        });
        let mut flushed = self.flushed.subscribe();
        // Events that are not recorded by then are delivered later.
        let _ = tokio::time::timeout(LONGEST_SETTLE, flushed.wait_for(|flushed| *flushed >= request)).await;
    }

    /// Records all events from now on. The future never completes while the yard exists.
    pub(in crate::control) fn follow(
        self: Arc<Self>,
        yard: Arc<Yard>,
        log: Option<&broadcast::Sender<Arc<LogEntry>>>,
    ) -> impl Future<Output = ()> + use<> {
        // Subscribes before the future is polled, because events before a subscription are lost
        // without notice.
        let mut inputs = JournalInputs {
            events: yard.events().subscribe(),
            stderr: yard.events().subscribe_stderr(),
            log: log.map(broadcast::Sender::subscribe),
        };
        async move {
            let (mut readers, mut flush_requests) =
                (self.readers.subscribe(), self.flush_requests.subscribe());
            loop {
                // Without readers, calls do not wake this task.
                if readers.wait_for(|readers| *readers > 0).await.is_err() {
                    return;
                }
                self.catch_up(&mut inputs, &yard, Loss::Unattended);
                self.current.send_replace(true);
                while *readers.borrow_and_update() > 0 {
                    let request = *flush_requests.borrow_and_update();
                    self.catch_up(&mut inputs, &yard, Loss::Overrun);
                    self.flushed.send_replace(request);
                    tokio::select! {
                        () = tokio::time::sleep(GATHER) => {}
                        Ok(()) = flush_requests.changed() => continue,
                    }
                    tokio::select! {
                        // After the last reader detaches, new events are left for the next reader.
                        biased;
                        Ok(()) = readers.changed() => {}
                        event = inputs.events.recv() => match event {
                            Ok(event) => self.note(&yard, &event),
                            Err(RecvError::Lagged(missed)) => self.record_loss(missed, &yard, Loss::Overrun),
                            Err(RecvError::Closed) => return,
                        },
                        Ok(line) = inputs.stderr.recv() => self.record_line(JournalEvent::Stderr(line)),
                        Ok(line) = next_log_line(&mut inputs.log) => self.record_line(JournalEvent::Log(line)),
                        Ok(()) = flush_requests.changed() => {}
                    }
                }
                self.current.send_replace(false);
            }
        }
    }

    /// Records all waiting events and lines.
    fn catch_up(&self, inputs: &mut JournalInputs, yard: &Yard, loss: Loss) {
        self.read(&mut inputs.events, yard, loss);
        for line in drain_lines(&mut inputs.stderr) {
            self.record_line(JournalEvent::Stderr(line));
        }
        for line in inputs.log.iter_mut().flat_map(drain_lines) {
            self.record_line(JournalEvent::Log(line));
        }
        self.latest.send_replace(self.seq());
    }

    fn read(&self, events: &mut broadcast::Receiver<Arc<YardEvent>>, yard: &Yard, loss: Loss) {
        loop {
            match events.try_recv() {
                Ok(event) => self.note(yard, &event),
                Err(TryRecvError::Lagged(missed)) => self.record_loss(missed, yard, loss),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }
}

/// Returns the waiting lines. Lines that did not fit into the channel are dropped.
fn drain_lines<T: Clone>(lines: &mut broadcast::Receiver<T>) -> Vec<T> {
    let mut drained = Vec::new();
    loop {
        match lines.try_recv() {
            Ok(line) => drained.push(line),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return drained,
        }
    }
}

async fn next_log_line(
    log: &mut Option<broadcast::Receiver<Arc<LogEntry>>>,
) -> Result<Arc<LogEntry>, RecvError> {
    match log {
        Some(log) => log.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_util::task::AbortOnDropHandle;
    use toolyard_hub::{CallRequest, CallTarget, Principal, Yard};

    use super::super::Journal;

    /// Returns a yard that refuses every call, and a journal that follows it.
    fn followed() -> (Arc<Yard>, Arc<Journal>, AbortOnDropHandle<()>) {
        let (yard, journal) = (Yard::with_sources([]), Arc::new(Journal::new(None)));
        let following = Arc::clone(&journal).follow(Arc::clone(&yard), None);
        (yard, journal, AbortOnDropHandle::new(tokio::spawn(following)))
    }

    async fn call(yard: &Yard, times: usize) {
        for _ in 0..times {
            let target = CallTarget::Tool { name: "x".to_owned(), arguments: None };
            yard.call(CallRequest::new(target, Principal::owner())).await.unwrap_err();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_recorded_only_while_a_reader_is_attached_and_then_all_of_them() {
        let (yard, journal, _following) = followed();
        let before = journal.seq();
        call(&yard, 3).await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        assert_eq!((journal.seq(), journal.calls().len()), (before, 0));
        let reader = journal.attach().await;
        assert_eq!((journal.seq(), journal.calls().len()), (before + 6, 3));
        drop(reader);
        call(&yard, 2).await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        assert_eq!(journal.calls().len(), 3, "no reader is attached");
        let (first, second) = tokio::join!(journal.attach(), journal.attach());
        assert_eq!(journal.calls().len(), 5);
        drop(first);
        let mut latest = journal.watch();
        call(&yard, 1).await;
        latest.wait_for(|seq| *seq == before + 12).await.unwrap();
        assert_eq!(journal.calls().len(), 6, "the second reader is still attached");
        drop(second);
    }

    #[tokio::test]
    async fn a_flush_records_calls_that_have_just_ended() {
        let (yard, journal, _following) = followed();
        let _reader = journal.attach().await;
        for round in 1..=20 {
            call(&yard, 1).await;
            journal.flush().await;
            assert_eq!(journal.calls().iter().filter(|call| call.end.is_some()).count(), round);
        }
    }

    #[tokio::test]
    async fn events_beyond_the_channel_capacity_are_counted_and_no_earlier_call_is_shown_as_running() {
        let (yard, journal, _following) = followed();
        let before = journal.seq();
        call(&yard, 2_000).await;
        let _reader = journal.attach().await;
        let since = journal.since(before, 1);
        let capacity = 1_024;
        assert!(
            matches!(since.entries[0].event, super::JournalEvent::Lagged(lost) if lost == 4_000 - capacity)
        );
        assert_eq!((journal.seq(), journal.calls().len()), (before + 4_000 + 1, 512));
        assert!(journal.calls().iter().all(|call| call.end.is_some()));
    }
}
