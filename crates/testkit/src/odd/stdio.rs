//! A misbehaving server over its standard streams.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Kind;
use super::rpc::{Message, Out, ReplySender, Server};

const QUEUE: usize = 16;

pub(super) async fn serve(server: Arc<Server>) -> io::Result<()> {
    let (out, outgoing) = mpsc::channel(QUEUE);
    let writing = write(outgoing, server.kind() == Kind::Noisy);
    let reading = async {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        let mut running = JoinSet::new();
        while let Some(line) = lines.next_line().await? {
            let Ok(message) = serde_json::from_str::<Message>(&line) else { continue };
            let (server, channel) = (Arc::clone(&server), ReplySender { out: out.clone(), standing: true });
            running.spawn(async move { server.handle(message, channel).await });
        }
        Ok(())
    };
    tokio::select! {
        read = reading => read,
        written = writing => written,
    }
}

async fn write(mut outgoing: mpsc::Receiver<Out>, noisy: bool) -> io::Result<()> {
    let mut stdout = tokio::io::stdout();
    if noisy {
        stdout.write_all(b"Welcome to the noisy server!\n\n").await?;
    }
    while let Some(Out::Says(mut text) | Out::Answers(mut text, _)) = outgoing.recv().await {
        if noisy {
            stdout.write_all(NOISE).await?;
        }
        text.push('\n');
        stdout.write_all(text.as_bytes()).await?;
        stdout.flush().await?;
    }
    Ok(())
}

/// Invalid UTF-8, invalid JSON, and JSON that is not a message.
const NOISE: &[u8] =
    b"INFO \x1b[32msaying something\x1b[0m\n\xff\xfe\n{\"level\":\"info\",\"msg\":\"hm\"}\n[1]\n\"{\n";
