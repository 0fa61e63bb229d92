//! `toolyard man`

use clap::CommandFactory;
use clap_mangen::Man;
use toolyard_hub::nearest;

use crate::Exit;
use crate::args::{Args, ManArgs};
use crate::error::CommandError;
use crate::terminal::{StdoutWriter, print_note};

pub(crate) fn run(args: &ManArgs) -> Result<Exit, CommandError> {
    let mut whole = Args::command().disable_help_subcommand(true);
    whole.build();
    if let Some(folder) = &args.dir {
        let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(whole, folder));
        let cannot =
            |error| CommandError::new(Exit::Failed, format!("cannot write to {}: {error}", folder.display()));
        written.map_err(cannot)?;
        print_note(&format!("wrote the manual pages to {}", folder.display()));
        return Ok(Exit::Success);
    }
    let page = match &args.verb {
        None => whole,
        Some(verb) => {
            let command = whole.find_subcommand(verb).filter(|command| !command.is_hide_set()).cloned();
            command.ok_or_else(|| {
                let names = whole
                    .get_subcommands()
                    .filter(|command| !command.is_hide_set())
                    .map(clap::Command::get_name);
                let fault = CommandError::usage(format!("unknown command `{verb}`"));
                match nearest(verb, names) {
                    Some(close) => fault.suggest(format!("did you mean `{close}`?")),
                    None => fault,
                }
            })?
        }
    };
    let mut text = Vec::new();
    Man::new(page).render(&mut text)?;
    let mut out = StdoutWriter::new();
    out.write_bytes(&text)?;
    out.flush()?;
    Ok(Exit::Success)
}
