//! A folding view of JSON. It keeps the original text and parses only what is unfolded; of long
//! lists, only the beginning until more is requested.

use std::sync::Arc;

use super::json_scan::{end_of_value, skip_space};
use super::search::find;
use super::{SearchDirection, SearchStart};
use crate::text::{clean, floor_char_boundary, format_size, width};

/// How many members are loaded at a time, and how many at most by a search.
const STEP: usize = 500;
const MOST: usize = 200_000;
/// Values up to this length are unfolded initially, up to a limit.
const SHORT: usize = 4_096;
const OPEN_AT_FIRST: usize = 200;
/// How much of a string is shown in its line.
const SHOWN: usize = 2_048;

#[derive(Debug)]
pub(crate) struct ResultTree {
    text: Arc<str>,
    nodes: Vec<TreeNode>,
    rows: Vec<(usize, TreeRowKind)>,
}

#[derive(Debug)]
struct TreeNode {
    parent: Option<usize>,
    depth: usize,
    /// The name of a member, with its quotes.
    name: Option<(usize, usize)>,
    start: usize,
    end: usize,
    open: bool,
    kids: Vec<usize>,
    /// The start of the next member that is not loaded yet.
    rest: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeRowKind {
    Scalar,
    Folded,
    Open,
    Close,
    /// More members follow that are not loaded.
    More,
}

/// One line as shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeRow {
    pub(super) depth: usize,
    pub(super) name: Option<String>,
    pub(super) value: String,
    pub(super) kind: TreeRowKind,
}

impl ResultTree {
    pub(crate) fn new(text: Arc<str>) -> Self {
        let start = skip_space(text.as_bytes(), 0);
        let mut tree = Self { text, nodes: Vec::new(), rows: Vec::new() };
        let end = tree.text.trim_end().len().max(start);
        tree.add_node(None, None, start, end);
        let mut next = 0;
        while next < tree.nodes.len() && next < OPEN_AT_FIRST {
            let node = &tree.nodes[next];
            if next == 0 || node.end - node.start <= SHORT {
                tree.open_node(next);
            }
            next += 1;
        }
        tree.lay_out();
        tree
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn row(&self, line: usize) -> Option<TreeRow> {
        let (at, kind) = *self.rows.get(line)?;
        let node = &self.nodes[at];
        let first = self.text.as_bytes().get(node.start).copied();
        let (open, close) = if first == Some(b'{') { ("{", "}") } else { ("[", "]") };
        let value = match kind {
            TreeRowKind::Scalar => {
                let end = floor_char_boundary(&self.text, node.end.min(node.start + SHOWN));
                clean(&self.text[node.start..end]).into_owned()
            }
            TreeRowKind::Folded if node.end - node.start <= 2 => format!("{open}{close}"),
            TreeRowKind::Folded => format!("{open} … {close}  {}", format_size(node.end - node.start)),
            TreeRowKind::Open => open.to_owned(),
            TreeRowKind::Close => close.to_owned(),
            TreeRowKind::More => {
                let left = node.rest.map_or(0, |rest| node.end - rest);
                format!("… {} more; press Enter to show the next {STEP}", format_size(left))
            }
        };
        let named = !matches!(kind, TreeRowKind::Close | TreeRowKind::More);
        let depth = node.depth + usize::from(kind == TreeRowKind::More);
        Some(TreeRow { depth, name: self.name(node).filter(|_| named), value, kind })
    }

    fn name(&self, node: &TreeNode) -> Option<String> {
        let (start, end) = node.name?;
        Some(clean(self.text.get(start + 1..end - 1)?).into_owned())
    }

    pub(super) fn toggle(&mut self, line: usize) {
        let Some((at, kind)) = self.rows.get(line).copied() else { return };
        match kind {
            TreeRowKind::Scalar => {}
            TreeRowKind::Folded => self.open_node(at),
            TreeRowKind::Open | TreeRowKind::Close => self.nodes[at].open = false,
            TreeRowKind::More => self.load_children(at, STEP),
        }
        self.lay_out();
    }

    pub(super) fn open(&mut self, line: usize) {
        if let Some((_, TreeRowKind::Folded | TreeRowKind::More)) = self.rows.get(line) {
            self.toggle(line);
        }
    }

    /// Folds the open value in this line, or else the value that contains it. Returns the line of
    /// the folded value.
    pub(super) fn close(&mut self, line: usize) -> usize {
        let Some((at, kind)) = self.rows.get(line).copied() else { return line };
        let folding = match kind {
            TreeRowKind::Open | TreeRowKind::Close | TreeRowKind::More => Some(at),
            TreeRowKind::Folded | TreeRowKind::Scalar => self.nodes[at].parent,
        };
        let Some(folding) = folding else { return line };
        self.nodes[folding].open = false;
        self.lay_out();
        self.rows.iter().position(|(at, _)| *at == folding).unwrap_or(0)
    }

    /// Folds everything except the outermost value.
    pub(super) fn fold_all(&mut self) {
        for node in self.nodes.iter_mut().skip(1) {
            node.open = false;
        }
        self.lay_out();
    }

    /// Returns the string in this line if it is too long for one line.
    pub(super) fn long_text(&self, line: usize) -> Option<(String, Arc<str>)> {
        let (at, TreeRowKind::Scalar) = self.rows.get(line)? else { return None };
        let node = &self.nodes[*at];
        let text: String = serde_json::from_str(&self.text[node.start..node.end]).ok()?;
        let long = text.contains('\n') || text.len() > SHOWN || width(&text) > 60;
        let name = self.name(node).unwrap_or_else(|| "text".to_owned());
        long.then(|| (name, Arc::from(text)))
    }

    /// Returns the line of the next match in names and values, and unfolds what hides it.
    pub(super) fn find(
        &mut self,
        needle: &str,
        line: Option<usize>,
        way: SearchDirection,
        start: SearchStart,
    ) -> Option<usize> {
        let node = line.and_then(|line| self.rows.get(line)).map(|(at, kind)| (&self.nodes[*at], *kind));
        let from = match (node, way) {
            (Some((node, TreeRowKind::Close)), SearchDirection::Down) => node.end,
            (Some((node, TreeRowKind::Scalar)), SearchDirection::Down) if start == SearchStart::After => {
                node.end
            }
            (Some((node, _)), SearchDirection::Down) if start == SearchStart::After => node.start + 1,
            (Some((node, TreeRowKind::Close)), SearchDirection::Up) => node.end,
            (Some((node, _)), _) => node.name.map_or(node.start, |(start, _)| start),
            (None, SearchDirection::Down) => 0,
            (None, SearchDirection::Up) => self.text.len(),
        };
        let found = find(&self.text, needle, from, way)?;
        self.reveal(found)
    }

    /// Unfolds everything that hides this byte of the text.
    fn reveal(&mut self, byte: usize) -> Option<usize> {
        let mut at = 0;
        loop {
            let node = &self.nodes[at];
            if byte < node.start || !self.is_container(node) {
                break;
            }
            self.open_node(at);
            while self.nodes[at].rest.is_some_and(|rest| rest <= byte) && self.nodes[at].kids.len() < MOST {
                self.load_children(at, STEP);
            }
            let kids = &self.nodes[at].kids;
            let inside = kids.iter().copied().find(|kid| {
                let kid = &self.nodes[*kid];
                kid.name.map_or(kid.start, |(start, _)| start) <= byte && byte < kid.end
            });
            match inside {
                Some(kid) => at = kid,
                None => break,
            }
        }
        self.lay_out();
        self.rows.iter().position(|(row, _)| *row == at)
    }

    fn is_container(&self, node: &TreeNode) -> bool {
        matches!(self.text.as_bytes().get(node.start), Some(b'{' | b'['))
    }

    fn open_node(&mut self, at: usize) {
        if !self.is_container(&self.nodes[at]) {
            return;
        }
        self.nodes[at].open = true;
        if self.nodes[at].kids.is_empty() {
            self.load_children(at, STEP);
        }
    }

    fn add_node(
        &mut self,
        parent: Option<usize>,
        name: Option<(usize, usize)>,
        start: usize,
        end: usize,
    ) -> usize {
        // Malformed text may end anywhere.
        let start = start.min(self.text.len());
        let end = end.clamp(start, self.text.len());
        let depth = parent.map_or(0, |parent| self.nodes[parent].depth + 1);
        let container = matches!(self.text.as_bytes().get(start), Some(b'{' | b'['));
        let rest = container.then_some(start + 1);
        self.nodes.push(TreeNode { parent, depth, name, start, end, open: false, kids: Vec::new(), rest });
        self.nodes.len() - 1
    }

    /// Loads the next members.
    fn load_children(&mut self, at: usize, many: usize) {
        let text = Arc::clone(&self.text);
        let bytes = text.as_bytes();
        let object = bytes.get(self.nodes[at].start) == Some(&b'{');
        let Some(mut rest) = self.nodes[at].rest else { return };
        for _ in 0..many {
            rest = skip_space(bytes, rest);
            if matches!(bytes.get(rest), None | Some(b'}' | b']')) {
                self.nodes[at].rest = None;
                return;
            }
            let mut name = None;
            if object {
                let end = end_of_value(bytes, rest);
                name = Some((rest, end));
                // Skips the colon.
                rest = skip_space(bytes, skip_space(bytes, end) + 1);
            }
            let end = end_of_value(bytes, rest);
            let kid = self.add_node(Some(at), name, rest, end);
            self.nodes[at].kids.push(kid);
            rest = skip_space(bytes, end);
            if bytes.get(rest) == Some(&b',') {
                rest += 1;
            }
        }
        rest = skip_space(bytes, rest);
        let over = matches!(bytes.get(rest), None | Some(b'}' | b']'));
        self.nodes[at].rest = (!over).then_some(rest);
    }

    fn lay_out(&mut self) {
        let mut rows = Vec::new();
        // The values that remain to be listed, last first.
        let mut left = vec![(0, None)];
        while let Some((at, closing)) = left.pop() {
            if let Some(kind) = closing {
                rows.push((at, kind));
                continue;
            }
            let node = &self.nodes[at];
            if !self.is_container(node) {
                rows.push((at, TreeRowKind::Scalar));
            } else if !node.open || (node.kids.is_empty() && node.rest.is_none()) {
                rows.push((at, TreeRowKind::Folded));
            } else {
                rows.push((at, TreeRowKind::Open));
                left.push((at, Some(TreeRowKind::Close)));
                if node.rest.is_some() {
                    left.push((at, Some(TreeRowKind::More)));
                }
                left.extend(node.kids.iter().rev().map(|kid| (*kid, None)));
            }
        }
        self.rows = rows;
    }

    /// Returns every line, for tests.
    #[cfg(test)]
    pub(super) fn dump(&self) -> Vec<String> {
        (0..self.len())
            .filter_map(|line| self.row(line))
            .map(|row| {
                let name = row.name.map(|name| format!("{name}: ")).unwrap_or_default();
                format!("{}{name}{}", "  ".repeat(row.depth), row.value)
            })
            .collect()
    }
}

/// Returns whether text is structured JSON, which is better shown folded.
pub(super) fn is_structured(text: &str) -> bool {
    let trimmed = text.trim();
    trimmed.starts_with(['{', '['])
        && trimmed.len() > 2
        && serde_json::from_str::<&serde_json::value::RawValue>(trimmed).is_ok()
}
