//! Following the yard for the journal, at no cost to calls while nobody is attached: what happens then waits where the hub
//! keeps it, as much as fits there, and is read when somebody comes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use toolyard_hub::{StderrLine, Yard, YardEvent};

use super::{Journal, JournalEvent, LogEntry};

/// How long events are gathered before they are written down, so that each of very many does not wake anybody.
const GATHER: Duration = Duration::from_millis(5);

/// How long anybody waits for the journal to be up to date.
const LONGEST_SETTLE: Duration = Duration::from_secs(2);

/// Somebody who is attached; the journal is up to date for as long as there is one.
#[derive(Debug)]
pub(in crate::control) struct JournalReader(Arc<Journal>);

impl Drop for JournalReader {
    fn drop(&mut self) {
        self.0.readers.send_modify(|guests| *guests -= 1);
    }
}

/// What the journal hears with.
struct JournalInputs {
    events: broadcast::Receiver<Arc<YardEvent>>,
    stderr: broadcast::Receiver<Arc<StderrLine>>,
    log: Option<broadcast::Receiver<Arc<LogEntry>>>,
}

/// Whether events that were lost came while somebody listened, or while nobody did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Overrun,
    Unattended,
}

impl Journal {
    /// Attaches somebody. What happened before is written down when this is done.
    pub(in crate::control) async fn attach(self: &Arc<Self>) -> JournalReader {
        self.readers.send_modify(|guests| *guests += 1);
        let guest = JournalReader(Arc::clone(self));
        // It ends only with the process, and then nobody needs to be told anything.
        let _ = self.current.subscribe().wait_for(|current| *current).await;
        guest
    }

    /// Waits until everything is written down that has happened before this was called; somebody must be attached.
    pub(in crate::control) async fn flush(&self) {
        let mut turn = 0;
        self.flush_requests.send_modify(|asked| {
            *asked += 1;
            turn = *asked;
        });
        let mut answered = self.flushed.subscribe();
        // What is not written down by then is told later.
        let _ = tokio::time::timeout(LONGEST_SETTLE, answered.wait_for(|answered| *answered >= turn)).await;
    }

    /// Writes down whatever happens from now on, for ever.
    pub(in crate::control) fn follow(
        self: Arc<Self>,
        yard: Arc<Yard>,
        log: Option<&broadcast::Sender<Arc<LogEntry>>>,
    ) -> impl Future<Output = ()> + use<> {
        // Before anything else can happen: what is not subscribed to is missed without a trace.
        let mut ears = JournalInputs {
            events: yard.events().subscribe(),
            stderr: yard.events().subscribe_stderr(),
            log: log.map(broadcast::Sender::subscribe),
        };
        async move {
            let (mut guests, mut asked) = (self.readers.subscribe(), self.flush_requests.subscribe());
            loop {
                // Nobody is woken by a call until somebody wants to know of it.
                if guests.wait_for(|guests| *guests > 0).await.is_err() {
                    return;
                }
                self.catch_up(&mut ears, &yard, Loss::Unattended);
                self.current.send_replace(true);
                while *guests.borrow_and_update() > 0 {
                    let turn = *asked.borrow_and_update();
                    self.catch_up(&mut ears, &yard, Loss::Overrun);
                    self.flushed.send_replace(turn);
                    tokio::select! {
                        () = tokio::time::sleep(GATHER) => {}
                        Ok(()) = asked.changed() => continue,
                    }
                    tokio::select! {
                        // When nobody is there any more, what happened since is left for the next one.
                        biased;
                        Ok(()) = guests.changed() => {}
                        event = ears.events.recv() => match event {
                            Ok(event) => self.note(&yard, &event),
                            Err(RecvError::Lagged(missed)) => self.record_loss(missed, &yard, Loss::Overrun),
                            Err(RecvError::Closed) => return,
                        },
                        Ok(line) = ears.stderr.recv() => self.record_line(JournalEvent::Stderr(line)),
                        Ok(line) = next_log_line(&mut ears.log) => self.record_line(JournalEvent::Log(line)),
                        Ok(()) = asked.changed() => {}
                    }
                }
                self.current.send_replace(false);
            }
        }
    }

    /// Writes down whatever waits to be.
    fn catch_up(&self, ears: &mut JournalInputs, yard: &Yard, loss: Loss) {
        self.read(&mut ears.events, yard, loss);
        for line in drain_lines(&mut ears.stderr) {
            self.record_line(JournalEvent::Stderr(line));
        }
        for line in ears.log.iter_mut().flat_map(drain_lines) {
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

/// Lines that wait. Those that did not fit are not missed by anybody.
fn drain_lines<T: Clone>(lines: &mut broadcast::Receiver<T>) -> Vec<T> {
    let mut found = Vec::new();
    loop {
        match lines.try_recv() {
            Ok(line) => found.push(line),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return found,
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

    /// A yard in which every call is refused, which is a call all the same, and a journal that follows it.
    fn followed() -> (Arc<Yard>, Arc<Journal>, AbortOnDropHandle<()>) {
        let (yard, journal) = (Yard::with_sources([]), Arc::new(Journal::default()));
        let following = Arc::clone(&journal).follow(Arc::clone(&yard), None);
        (yard, journal, AbortOnDropHandle::new(tokio::spawn(following)))
    }

    async fn call(yard: &Yard, times: usize) {
        for _ in 0..times {
            let what = CallTarget::Tool { name: "x".to_owned(), arguments: None };
            yard.call(CallRequest::new(what, Principal::owner())).await.unwrap_err();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_down_until_somebody_comes_and_then_all_of_it() {
        let (yard, journal, _following) = followed();
        let before = journal.seq();
        call(&yard, 3).await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        assert_eq!((journal.seq(), journal.calls().len()), (before, 0));
        let guest = journal.attach().await;
        assert_eq!((journal.seq(), journal.calls().len()), (before + 6, 3));
        drop(guest);
        call(&yard, 2).await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        assert_eq!(journal.calls().len(), 3, "somebody is attached no more");
        let (first, second) = tokio::join!(journal.attach(), journal.attach());
        assert_eq!(journal.calls().len(), 5);
        drop(first);
        let mut latest = journal.watch();
        call(&yard, 1).await;
        latest.wait_for(|seq| *seq == before + 12).await.unwrap();
        assert_eq!(journal.calls().len(), 6, "the second is still there");
        drop(second);
    }

    #[tokio::test]
    async fn what_has_just_ended_is_known_to_who_asks() {
        let (yard, journal, _following) = followed();
        let _guest = journal.attach().await;
        for round in 1..=20 {
            call(&yard, 1).await;
            journal.flush().await;
            assert_eq!(journal.calls().iter().filter(|call| call.end.is_some()).count(), round);
        }
    }

    #[tokio::test]
    async fn more_than_can_wait_is_counted_and_no_call_of_before_is_shown_as_running() {
        let (yard, journal, _following) = followed();
        let before = journal.seq();
        call(&yard, 2_000).await;
        let _guest = journal.attach().await;
        let since = journal.since(before, 1);
        let kept = 1_024;
        assert!(matches!(since.entries[0].event, super::JournalEvent::Lagged(lost) if lost == 4_000 - kept));
        assert_eq!((journal.seq(), journal.calls().len()), (before + 4_000 + 1, 512));
        assert!(journal.calls().iter().all(|call| call.end.is_some()));
    }
}
