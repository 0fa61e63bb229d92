//! Programs that call tools: `inspect_tool`, `search_tools` and `execute_program`. The engine runs
//! sandboxed Python in separate processes. The broker handles the requests of programs; their tool
//! calls take the same path through the hub as any other call.

mod broker;
mod concurrency;
mod data;
mod definitions;
mod dumps;
mod engine;
mod execute;
#[cfg(test)]
mod fixtures;
mod inspect;
mod program;
mod progress;
mod python_names;
mod search;
mod settings;
pub mod shapes;
mod signature;
mod source;
mod tool_failure;
mod visible_tools;

#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use engine::fuzzing;
pub use engine::{
    AttackOutcome, AttackReport, Engine, EngineSettings, LaunchSettings, SandboxInfo, SandboxLayer, launch,
    launch_without_layers,
};
pub use execute::{META, NOTHING_PRINTED};
pub use program::{
    ExitReason, LastValue, PendingProgramQuestion, Program, ProgramBlock, ProgramData, ProgramLimits,
    ProgramOutcome, ProgramOutput, ProgramQuestion, ProgramReply, SandboxUnavailable, ToolBinding,
    ToolFailure, UnawaitedCall, UnfinishedReason, UnfinishedTask,
};
pub use search::rank_tools;
pub use settings::ProgramSettings;
pub use source::ProgramSource;
