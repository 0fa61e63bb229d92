//! Programs over tools: `inspect_tool`, `search_tools` and `execute_program`. The engine runs sandboxed Python in
//! processes of its own; the broker answers what programs ask, by the same corridor as any call.

mod dumps;
mod engine;
mod find;
#[cfg(test)]
mod fixture;
mod inspect;
mod program;
mod python;
mod search;
pub mod shapes;
mod signature;

pub use engine::{
    About, AttackOutcome, Attacked, Engine, EngineSettings, Launch, Layer, launch, launch_without,
};
pub use program::{
    Asked, Block, Data, Ending, Face, Failure, How, Limits, Printed, Program, Question, Reply, Unavailable,
};
