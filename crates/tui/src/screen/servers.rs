//! The servers: their state, what they offer, and why one is not ready.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use toolyard_hub::{AuthStatus, SourceCommand, SourceName, SourceState, SourceStatus};

use super::{CatalogScreen, KeyHints, Screen, ScreenAction};
use crate::canvas::{Canvas, inset, split_bottom, split_top};
use crate::filter::{FilterAction, ListFilter};
use crate::key::KeyPress;
use crate::list_cursor::ListCursor;
use crate::message::Effect;
use crate::text::{cell, clean, format_count, format_duration, wrap};
use crate::theme::Theme;
use crate::ui_state::{ItemCounts, UiState};

#[derive(Debug, Default)]
pub(crate) struct ServersScreen {
    pick: ListCursor,
    filter: ListFilter,
}

impl ServersScreen {
    pub(crate) fn is_typing(&self) -> bool {
        self.filter.typing
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if self.filter.typing {
            self.filter.paste(text);
        }
    }

    /// Returns the row of all servers and the servers that match the filter.
    fn rows<'a>(&self, world: &'a UiState) -> Vec<Option<&'a (SourceName, SourceStatus)>> {
        let query = self.filter.text().to_lowercase();
        let fits = |one: &&(SourceName, SourceStatus)| one.0.as_str().to_lowercase().contains(&query);
        let all = (self.filter.is_empty() && world.yard.sources.len() > 1).then_some(None);
        all.into_iter().chain(world.yard.sources.iter().filter(fits).map(Some)).collect()
    }

    pub(crate) fn update(&mut self, key: KeyPress, world: &UiState) -> ScreenAction {
        match self.filter.press(key) {
            FilterAction::Changed => {
                self.pick = ListCursor::default();
                return ScreenAction::Stay;
            }
            FilterAction::Same => return ScreenAction::Stay,
            FilterAction::Ignored => {}
        }
        let rows = self.rows(world);
        self.pick.clamp(rows.len());
        if self.pick.press(key, rows.len()) {
            return ScreenAction::Stay;
        }
        let chosen = rows.get(self.pick.at).copied();
        match (key, chosen) {
            (KeyPress::Enter | KeyPress::Right | KeyPress::Char('l'), Some(chosen)) => {
                let scope = chosen.map(|(name, _)| name.clone());
                ScreenAction::Open(Box::new(Screen::Catalog(CatalogScreen::new(scope, world))))
            }
            (KeyPress::Char('r'), Some(Some((name, _)))) => {
                ScreenAction::Run(Effect::Manage(name.clone(), SourceCommand::Reconnect))
            }
            (KeyPress::Char('r'), Some(None)) => {
                ScreenAction::Warn("select a single server to reconnect".to_owned())
            }
            (KeyPress::Char('e'), Some(Some((name, status)))) => {
                let order = if status.state == SourceState::Disabled {
                    SourceCommand::Enable
                } else {
                    SourceCommand::Disable
                };
                ScreenAction::Run(Effect::Manage(name.clone(), order))
            }
            _ => ScreenAction::Ignored,
        }
    }

    pub(crate) fn keys(&self, world: &UiState) -> KeyHints {
        if self.filter.typing {
            return vec![("type", "filter"), ("Enter", "keep"), ("Esc", "clear")];
        }
        let rows = self.rows(world);
        let mut keys = vec![("↑↓", "move"), ("Enter", "open"), ("/", "filter")];
        if let Some(Some((_, status))) = rows.get(self.pick.at) {
            keys.push(("r", "reconnect"));
            keys.push(("e", if status.state == SourceState::Disabled { "enable" } else { "disable" }));
        }
        keys.extend([("H", "history"), ("L", "log"), ("?", "help"), ("q", "quit")]);
        keys
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        let theme = canvas.theme;
        if world.yard.sources.is_empty() {
            let (message, more) = match &world.settings.yard {
                Some(_) => {
                    ("No servers that you have permission to see.", "hint: use a token with more permissions")
                }
                None => ("No servers configured.", "hint: run `toolyard add NAME -- COMMAND…` to add one"),
            };
            canvas.text(inset(area, 2), 1, message, theme.plain());
            canvas.text(inset(area, 2), 3, more, theme.dim());
            return;
        }
        let rows: Vec<Option<(SourceName, SourceStatus)>> =
            self.rows(world).into_iter().map(Option::<&_>::cloned).collect();
        let (list, foot) = split_bottom(area, (area.height / 3).clamp(3, 12));
        let (head, list) = split_top(list, 1);
        let columns = Columns::fit(usize::from(area.width), world);
        canvas.line(head, 0, &columns.header(theme));
        if self.filter.typing || !self.filter.is_empty() {
            let (typed, column) = self.filter.visible_line(40);
            canvas.text(head, 0, &cell(&format!(" / {typed}"), usize::from(head.width)), theme.accent());
            if self.filter.typing {
                canvas.set_cursor(head, 0, 3 + column);
            }
        }
        let window = self.pick.window(rows.len(), usize::from(list.height));
        for (line, at) in window.clone().enumerate() {
            let chosen = at == self.pick.at;
            if chosen {
                canvas.select(list, line);
            }
            let shown = match &rows[at] {
                None => columns.all_servers_row(world, chosen, theme),
                Some((name, status)) => columns.server_row(name, status, world, chosen, theme),
            };
            canvas.line(list, line, &shown);
        }
        canvas.scrollbar(list, window.start, rows.len());
        if rows.is_empty() {
            canvas.text(inset(list, 2), 0, "no matches; press Esc to clear the filter", theme.dim());
        }
        canvas.rule(foot, 0);
        let (_, foot) = split_top(inset(foot, 1), 1);
        let about = match rows.get(self.pick.at) {
            Some(Some((name, status))) => server_details(name, status, world, usize::from(foot.width), theme),
            Some(None) => overview(world, theme),
            None => Vec::new(),
        };
        for (line, (text, style)) in about.iter().take(usize::from(foot.height)).enumerate() {
            canvas.text(foot, line, text, *style);
        }
    }
}

/// The width of each column.
struct Columns {
    name: usize,
    state: usize,
    transport: usize,
    era: usize,
    auth: usize,
}

impl Columns {
    fn fit(width: usize, world: &UiState) -> Self {
        let longest = world.yard.sources.iter().map(|(name, _)| crate::text::width(&clean(name.as_str())));
        let longest = longest.max().unwrap_or(0).clamp(12, 40);
        let labels = world.yard.sources.iter().map(|(_, status)| status.state.label().len());
        let state = match width {
            100.. => 20,
            // The column fits the longest label; the remaining column is for the scroll bar.
            80.. => labels.max().unwrap_or(0).clamp(12, 19),
            _ => 12,
        };
        let (transport, era, auth) = if width >= 100 { (16, 18, 14) } else { (9, 6, 8) };
        // The columns, three counts, the marks, the spaces between them, and the scroll bar.
        let fixed = state + transport + era + auth + 3 * 6 + 8;
        Self { name: longest.min(width.saturating_sub(fixed).max(10)), state, transport, era, auth }
    }

    fn header(&self, theme: Theme) -> Line<'static> {
        let text = format!(
            "   {} {} {} {} {}{:>6}{:>6}{:>6}",
            cell("Server", self.name),
            cell("State", self.state),
            cell("Transport", self.transport),
            cell("Era", self.era),
            cell("Auth", self.auth),
            "Tools",
            "Res.",
            "Pr.",
        );
        Line::from(Span::styled(text, theme.dim()))
    }

    fn count_cells(counts: ItemCounts) -> String {
        let resources = counts.resources + counts.templates;
        let shown = |number: usize| if number == 0 { "·".to_owned() } else { number.to_string() };
        format!("{:>6}{:>6}{:>6}", shown(counts.tools), shown(resources), shown(counts.prompts))
    }

    fn all_servers_row(&self, world: &UiState, chosen: bool, theme: Theme) -> Line<'static> {
        let width = self.name + self.state + self.transport + self.era + self.auth + 4;
        let servers = format!("All {}", format_count(world.yard.sources.len(), "server"));
        Line::from(vec![
            pointer(chosen, theme),
            Span::raw("  "),
            Span::styled(cell(&servers, width), theme.strong()),
            Span::raw(Self::count_cells(world.total())),
        ])
    }

    fn server_row(
        &self,
        name: &SourceName,
        status: &SourceStatus,
        world: &UiState,
        chosen: bool,
        theme: Theme,
    ) -> Line<'static> {
        let (mark, style) = state_mark(status.state, theme);
        let era = match (status.era, status.version) {
            (Some(era), Some(version)) if self.era >= 18 => format!("{era} {version}"),
            (Some(era), _) => era.to_owned(),
            _ => "·".to_owned(),
        };
        let transport = match status.transport {
            Some("streamable-http") if self.transport < 16 => "http",
            Some(word) => word,
            None => "·",
        };
        let login = match status.authorization {
            AuthStatus::NotLoggedIn if self.auth < 14 => "missing",
            AuthStatus::BearerToken if self.auth < 14 => "token",
            status => status.label().unwrap_or("·"),
        };
        Line::from(vec![
            pointer(chosen, theme),
            Span::styled(format!("{mark} "), style),
            Span::raw(cell(&clean(name.as_str()), self.name)),
            Span::raw(" "),
            Span::styled(cell(status.state.label(), self.state), style),
            Span::raw(" "),
            Span::styled(cell(transport, self.transport), theme.dim()),
            Span::raw(" "),
            Span::styled(cell(&era, self.era), theme.dim()),
            Span::raw(" "),
            Span::styled(cell(login, self.auth), theme.dim()),
            Span::raw(Self::count_cells(world.counts(name))),
        ])
    }
}

fn pointer(chosen: bool, theme: Theme) -> Span<'static> {
    if chosen { Span::styled("▌", theme.accent()) } else { Span::raw(" ") }
}

/// Returns the mark and the color of a state.
pub(crate) fn state_mark(state: SourceState, theme: Theme) -> (&'static str, Style) {
    match state {
        SourceState::Ready => ("●", theme.good()),
        SourceState::Starting => ("◌", theme.warn()),
        SourceState::NeedsAuthorization => ("◍", theme.warn()),
        SourceState::Retrying => ("◍", theme.bad()),
        SourceState::Failed => ("✗", theme.bad()),
        SourceState::Disabled => ("○", theme.dim()),
    }
}

/// Describes one server.
fn server_details(
    name: &SourceName,
    status: &SourceStatus,
    world: &UiState,
    columns: usize,
    theme: Theme,
) -> Vec<(String, Style)> {
    let mut lines = Vec::new();
    let (mark, style) = state_mark(status.state, theme);
    let since = world.now.instant.saturating_duration_since(status.since);
    let mut state = format!("{mark} {} for {}", status.state.label(), format_duration(since));
    if let Some(retry) = status.retry_at {
        let wait = retry.saturating_duration_since(world.now.instant);
        state.push_str(&format!(", next attempt in {}", format_duration(wait)));
    }
    lines.push((format!("{}: {state}", clean(name.as_str())), style));
    if let Some(reason) = &status.reason {
        lines.extend(wrap(&clean(reason), columns).into_iter().map(|line| (line, theme.plain())));
    }
    if let Some(suggestion) = &status.suggestion {
        let hint = format!("hint: {}", clean(suggestion));
        lines.extend(wrap(&hint, columns).into_iter().map(|line| (line, theme.dim())));
    }
    let counts = world.counts(name);
    if status.state == SourceState::Ready {
        let offers = [
            format_count(counts.tools, "tool"),
            format_count(counts.resources, "resource"),
            format_count(counts.templates, "template"),
            format_count(counts.prompts, "prompt"),
        ];
        lines.push((offers.join(", "), theme.plain()));
    }
    for warning in status.warnings.iter().take(3) {
        lines.push((format!("! {}", clean(warning)), theme.warn()));
    }
    let last = status.stderr.len().saturating_sub(4);
    for line in &status.stderr[last..] {
        lines.push((format!("stderr  {}", clean(line)), theme.dim()));
    }
    lines
}

fn overview(world: &UiState, theme: Theme) -> Vec<(String, Style)> {
    let total = world.total();
    let ready = world.yard.sources.iter().filter(|(_, status)| status.state == SourceState::Ready).count();
    let sum = format!("{ready} of {} ready", format_count(world.yard.sources.len(), "server"));
    let offers = [
        format_count(total.tools, "tool"),
        format_count(total.resources, "resource"),
        format_count(total.templates, "template"),
        format_count(total.prompts, "prompt"),
    ];
    let mut lines = vec![(sum, theme.plain()), (offers.join(", "), theme.plain())];
    let troubled = world.yard.sources.iter().filter(|(_, status)| {
        matches!(status.state, SourceState::Failed | SourceState::Retrying | SourceState::NeedsAuthorization)
    });
    for (name, status) in troubled.take(4) {
        let (mark, style) = state_mark(status.state, theme);
        let reason = status.reason.as_deref().unwrap_or(status.state.label());
        lines.push((format!("{mark} {}: {}", clean(name.as_str()), clean(reason)), style));
    }
    lines
}
