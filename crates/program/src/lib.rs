//! Programs over tools: `inspect_tool`, `search_tools` and `execute_program`. The engine runs sandboxed Python in
//! processes of its own; the broker answers what programs ask, by the same corridor as any call.

mod broker;
mod data;
mod definitions;
mod dumps;
mod engine;
mod execute;
mod fault;
mod find;
#[cfg(test)]
mod fixture;
mod inspect;
mod meter;
mod program;
mod python;
mod search;
mod settings;
pub mod shapes;
mod signature;
mod slots;
mod source;

#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use engine::fuzzing;
pub use engine::{
    About, AttackOutcome, Attacked, Engine, EngineSettings, Launch, Layer, launch, launch_without,
};
pub use execute::{META, NOTHING_PRINTED};
pub use program::{
    Asked, Block, Data, Ending, Face, Failure, How, LastValue, Limits, Printed, Program, Question, Reply,
    Unavailable, Unawaited, Unfinished, WhyUnfinished,
};
pub use search::ranked;
pub use settings::ProgramSettings;
pub use source::Programs;
