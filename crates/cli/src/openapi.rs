//! `toolyard openapi`: shows the tools generated from an OpenAPI document, without serving them.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use toolyard_openapi::{
    Budgets, Conversion, ConvertSettings, Diagnostic, DiagnosticSeverity, DocumentLocation, FetchFn, Filters,
    HttpClients, LoadError, LoadSettings, OutputSchemaMode, convert, document_fetcher, load,
};

use crate::args::{DiagnosticsFormat, OpenApiArgs};
use crate::clean::clean_line;
use crate::terminal::{format_count, print_error, print_hint, print_note};
use crate::{Exit, upstream_setup};

pub(crate) async fn run(args: OpenApiArgs) -> anyhow::Result<Exit> {
    let location = match args.document.as_str() {
        "-" => {
            let mut text = Vec::new();
            let most = LoadSettings::default().limits.bytes as u64 + 1;
            std::io::stdin()
                .lock()
                .take(most)
                .read_to_end(&mut text)
                .context("cannot read standard input")?;
            DocumentLocation::Text {
                text: String::from_utf8_lossy(&text).into_owned(),
                folder: Some(PathBuf::from(".")),
            }
        }
        address if is_address(address) => DocumentLocation::Url(address.to_owned()),
        path => DocumentLocation::File(PathBuf::from(path)),
    };
    let settings = LoadSettings {
        fetch: fetcher(&args)?,
        follow_network_references: args.network_references,
        ..LoadSettings::default()
    };
    let shape = convert_settings(&args);
    // Large documents take a while, and fetching blocks.
    let work = tokio::task::spawn_blocking(move || {
        let document = load(&location, &settings)?;
        Ok::<Conversion, LoadError>(convert(&document, &shape))
    });
    let conversion = match work.await.context("the conversion failed")? {
        Ok(conversion) => conversion,
        Err(error) => {
            print_error(&clean_line(&error.to_string()));
            if args.document.contains("://") && !is_address(&args.document) {
                print_hint("a URL must start with http:// or https://");
            }
            let exit = match error {
                LoadError::Unreadable { .. } if is_address(&args.document) => Exit::Unreachable,
                _ => Exit::Usage,
            };
            return Ok(exit);
        }
    };
    print_diagnostics(&conversion.diagnostics, args.diagnostics)?;
    if let Some(path) = &args.output {
        let file = std::fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut file = std::io::BufWriter::new(file);
        write_tools(&conversion, &mut file)
            .and_then(|()| file.flush())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let written = match (args.json, &args.output) {
        (true, None) => write_tools(&conversion, &mut std::io::stdout().lock()),
        (true, Some(_)) => Ok(()),
        (false, _) => std::io::stdout().lock().write_all(table(&conversion).as_bytes()),
    };
    match written {
        // The reader, such as `head`, closed the pipe because it has read enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(Exit::Success),
    }
}

fn convert_settings(args: &OpenApiArgs) -> ConvertSettings {
    ConvertSettings {
        filters: Filters {
            include_tags: args.tag.clone(),
            exclude_tags: args.exclude_tag.clone(),
            include_methods: args.method.clone(),
            exclude_methods: args.exclude_method.clone(),
            include_paths: args.path.clone(),
            exclude_paths: args.exclude_path.clone(),
            include_operations: args.operation.clone(),
            exclude_operations: args.exclude_operation.clone(),
        },
        budgets: Budgets {
            input_bytes: args.input_budget,
            output_bytes: args.output_budget,
            ..Budgets::default()
        },
        output_schemas: if args.no_output_schemas { OutputSchemaMode::Omit } else { OutputSchemaMode::Exact },
        ..ConvertSettings::default()
    }
}

/// The fetcher for remote documents, if any are needed.
fn fetcher(args: &OpenApiArgs) -> anyhow::Result<Option<Arc<FetchFn>>> {
    if !is_address(&args.document) && !args.network_references {
        return Ok(None);
    }
    let http =
        HttpClients::new(&upstream_setup::build_context()?.tls).context("cannot create the HTTP client")?;
    Ok(Some(document_fetcher(&args.document, http, tokio::runtime::Handle::current())))
}

fn is_address(document: &str) -> bool {
    document.starts_with("http://") || document.starts_with("https://")
}

fn write_tools(conversion: &Conversion, to: &mut dyn Write) -> std::io::Result<()> {
    to.write_all(b"[")?;
    for (n, operation) in conversion.operations.iter().enumerate() {
        to.write_all(if n == 0 { b"\n" } else { b",\n" })?;
        to.write_all(operation.definition.get().as_bytes())?;
    }
    to.write_all(b"\n]\n")
}

fn print_diagnostics(diagnostics: &[Diagnostic], form: DiagnosticsFormat) -> anyhow::Result<()> {
    let colour =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    match form {
        DiagnosticsFormat::None => {}
        DiagnosticsFormat::Json => eprintln!("{}", serde_json::to_string(diagnostics)?),
        DiagnosticsFormat::Text | DiagnosticsFormat::All => {
            let mut hidden = 0;
            for diagnostic in diagnostics {
                if form == DiagnosticsFormat::Text && diagnostic.severity == DiagnosticSeverity::Note {
                    hidden += 1;
                    continue;
                }
                eprintln!(
                    "{}",
                    format_diagnostic(
                        diagnostic,
                        if colour { DiagnosticColor::Ansi } else { DiagnosticColor::Plain }
                    )
                );
            }
            if hidden > 0 {
                print_note(&format!("{} of severity `note` not shown", format_count(hidden, "diagnostic")));
                print_hint("run with `--diagnostics all` to show them");
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DiagnosticColor {
    Ansi,
    Plain,
}

fn format_diagnostic(diagnostic: &Diagnostic, painting: DiagnosticColor) -> String {
    let (word, colour) = match diagnostic.severity {
        DiagnosticSeverity::Note => ("note", "36"),
        DiagnosticSeverity::Warning => ("warning", "33"),
        DiagnosticSeverity::Error => ("error", "31"),
    };
    let word = match painting {
        DiagnosticColor::Ansi => format!("\u{1b}[{colour}m{word}\u{1b}[0m"),
        DiagnosticColor::Plain => word.to_owned(),
    };
    let operation = diagnostic.operation.as_deref().map(|operation| format!(" ({})", clean_line(operation)));
    let operation = operation.unwrap_or_default();
    let pointer = if diagnostic.pointer.is_empty() { "/" } else { &diagnostic.pointer };
    format!(
        "{word} [{}] {}: {}{operation}",
        diagnostic.code,
        clean_line(pointer),
        clean_line(&diagnostic.message)
    )
}

fn table(conversion: &Conversion) -> String {
    let warnings = |label: &str| {
        let about = |diagnostic: &&Diagnostic| diagnostic.operation.as_deref() == Some(label);
        conversion
            .diagnostics
            .iter()
            .filter(about)
            .filter(|diagnostic| diagnostic.severity > DiagnosticSeverity::Note)
            .count()
    };
    let mut rows = vec![["TOOL", "OPERATION", "BYTES", "WARNINGS"].map(str::to_owned)];
    for operation in &conversion.operations {
        let label = format!("{} {}", operation.method.as_str(), operation.path);
        let count = warnings(&label);
        let count = if count == 0 { String::new() } else { count.to_string() };
        let size = operation.definition.get().len().to_string();
        rows.push([operation.name.clone(), clean_line(&label), size, count]);
    }
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [wide(0), wide(1).min(60), wide(2)];
    let mut text = String::new();
    for row in &rows {
        let [name, label, size, count] = row;
        let line = format!("{name:<0$}  {label:<1$}  {size:>2$}  {count}", widths[0], widths[1], widths[2]);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let title = match (conversion.title.as_str(), conversion.version.as_str()) {
        ("", _) => "The document".to_owned(),
        (title, "") => clean_line(title),
        (title, version) => clean_line(&format!("{title} {version}")),
    };
    let (tools, weight) = (conversion.operations.len(), conversion.weight);
    text.push_str(&format!("{title}: {}, {weight} bytes\n", format_count(tools, "tool")));
    text
}

#[cfg(test)]
mod tests {
    use toolyard_openapi::{Diagnostic, DiagnosticSeverity};

    use super::{DiagnosticColor, format_diagnostic};

    #[test]
    fn what_could_move_a_cursor_is_not_printed() {
        let diagnostic = Diagnostic {
            severity: DiagnosticSeverity::Warning,
            pointer: "/paths/\u{202e}a\n".to_owned(),
            code: "odd",
            message: "a\u{1b}[31mb\r\nc\u{9b}d".to_owned(),
            operation: Some("GET /\u{7}".to_owned()),
            extra: None,
        };
        let printed = format_diagnostic(&diagnostic, DiagnosticColor::Plain);
        assert_eq!(printed, "warning [odd] /paths/\\u{202e}a: ab c (GET /\\u{7})");
    }
}
