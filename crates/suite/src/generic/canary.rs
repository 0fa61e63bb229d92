//! A random value in the environment of the server. It must not come back in any message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;

/// What replaces the value in reports.
pub(crate) const MASK: &str = "(canary)";
/// The variable that holds the value.
pub(crate) const VARIABLE: &str = "CANARY_API_KEY";

/// Looks for the value in the messages of a connection.
#[derive(Debug)]
pub(crate) struct CanaryWatch {
    /// The value in every form that is recognized, each with the name of the form.
    forms: Vec<(String, &'static str)>,
    /// The forms that were found since the last look.
    found: Mutex<Vec<&'static str>>,
}

impl CanaryWatch {
    pub(crate) fn new(value: &str) -> Self {
        let mut forms = vec![(value.to_owned(), "as it is")];
        // The alphabet for URLs differs in two characters that a hexadecimal value never produces. A
        // text can start at each of three positions in a group; the outer characters depend on what
        // surrounds it.
        for padding in 0..3 {
            let mut bytes = vec![0; padding];
            bytes.extend_from_slice(value.as_bytes());
            let encoded = STANDARD.encode(&bytes);
            let start = [0, 2, 3][padding];
            let end = encoded.len() - 4;
            forms.extend(encoded.get(start..end).map(|middle| (middle.to_owned(), "in Base64")));
        }
        let hexadecimal: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        forms.push((hexadecimal, "in hexadecimal"));
        forms.push((value.chars().rev().collect(), "in reverse"));
        Self { forms, found: Mutex::default() }
    }

    /// Examines a message of the server.
    pub(crate) fn examine(&self, message: &[u8]) {
        let contains = |form: &str| memchr::memmem::find(message, form.as_bytes()).is_some();
        let hits = self.forms.iter().filter(|(form, _)| contains(form)).map(|(_, name)| *name);
        let mut found = self.found.lock();
        for name in hits {
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }

    /// Returns the forms that were found since the last call of this.
    pub(crate) fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.found.lock())
    }

    /// Removes the value from a text that is shown.
    pub(crate) fn mask(&self, text: &str) -> String {
        self.forms.iter().fold(text.to_owned(), |text, (form, _)| match text.contains(form.as_str()) {
            true => text.replace(form.as_str(), MASK),
            false => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::CanaryWatch;

    const VALUE: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn the_value_is_found_in_every_form() {
        let watch = CanaryWatch::new(VALUE);
        let found = |message: &str| {
            watch.examine(message.as_bytes());
            watch.take()
        };
        assert_eq!(found(r#"{"text":"nothing"}"#), Vec::<&str>::new());
        assert_eq!(found(&format!("{{\"text\":\"a{VALUE}b\"}}")), ["as it is"]);
        for before in ["", "k", "ke", "key", "KEY="] {
            let encoded = STANDARD.encode(format!("{before}{VALUE}; and more"));
            assert_eq!(found(&encoded), ["in Base64"], "{before:?}");
        }
        assert_eq!(
            found(&VALUE.bytes().map(|byte| format!("{byte:02x}")).collect::<String>()),
            ["in hexadecimal"]
        );
        assert_eq!(found(&VALUE.chars().rev().collect::<String>()), ["in reverse"]);
    }

    #[test]
    fn reports_do_not_contain_the_value() {
        let watch = CanaryWatch::new(VALUE);
        assert_eq!(watch.mask(&format!("API_KEY={VALUE}!")), "API_KEY=(canary)!");
        let encoded = STANDARD.encode(VALUE);
        assert!(!watch.mask(&encoded).contains(&encoded[..40]));
    }
}
