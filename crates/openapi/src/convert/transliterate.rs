//! Transliteration of names. Letters with a common Latin spelling are transliterated. Other letters
//! are replaced with a hash, so that different names stay different.

/// A text in ASCII letters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Transliteration {
    pub(super) text: String,
    /// Whether there were letters without a Latin spelling.
    pub(super) lossy: bool,
}

/// Lowercase letters and their Latin spelling.
const SPELLINGS: &[(&str, &str)] = &[
    ("àáâãäåāăąǎ", "a"),
    ("æ", "ae"),
    ("çćĉċč", "c"),
    ("ďđð", "d"),
    ("èéêëēĕėęě", "e"),
    ("ĝğġģ", "g"),
    ("ĥħ", "h"),
    ("ìíîïĩīĭįıǐ", "i"),
    ("ĵ", "j"),
    ("ķ", "k"),
    ("ĺļľŀł", "l"),
    ("ñńņňŋ", "n"),
    ("òóôõöøōŏőǒ", "o"),
    ("œ", "oe"),
    ("ŕŗř", "r"),
    ("śŝşšș", "s"),
    ("ß", "ss"),
    ("ţťŧț", "t"),
    ("þ", "th"),
    ("ùúûüũūŭůűųǔ", "u"),
    ("ŵ", "w"),
    ("ýÿŷ", "y"),
    ("źżž", "z"),
    // Cyrillic
    ("а", "a"),
    ("б", "b"),
    ("в", "v"),
    ("гґ", "g"),
    ("дђ", "d"),
    ("еэє", "e"),
    ("ё", "yo"),
    ("ж", "zh"),
    ("з", "z"),
    ("иі", "i"),
    ("ї", "yi"),
    ("йј", "j"),
    ("к", "k"),
    ("л", "l"),
    ("љ", "lj"),
    ("м", "m"),
    ("н", "n"),
    ("њ", "nj"),
    ("о", "o"),
    ("п", "p"),
    ("р", "r"),
    ("с", "s"),
    ("тћ", "t"),
    ("уў", "u"),
    ("ф", "f"),
    ("х", "kh"),
    ("ц", "ts"),
    ("ч", "ch"),
    ("џ", "dz"),
    ("ш", "sh"),
    ("щ", "shch"),
    ("ъь", ""),
    ("ы", "y"),
    ("ю", "yu"),
    ("я", "ya"),
    // Greek
    ("αά", "a"),
    ("β", "v"),
    ("γ", "g"),
    ("δ", "d"),
    ("εέ", "e"),
    ("ζ", "z"),
    ("ηήιίϊΐ", "i"),
    ("θ", "th"),
    ("κ", "k"),
    ("λ", "l"),
    ("μ", "m"),
    ("ν", "n"),
    ("ξ", "x"),
    ("οόωώ", "o"),
    ("π", "p"),
    ("ρ", "r"),
    ("σς", "s"),
    ("τ", "t"),
    ("υύϋΰ", "y"),
    ("φ", "f"),
    ("χ", "ch"),
    ("ψ", "ps"),
];

pub(super) fn transliterate(text: &str) -> Transliteration {
    let mut out = Transliteration { text: String::with_capacity(text.len()), lossy: false };
    for character in text.chars() {
        match character {
            _ if character.is_ascii() => out.text.push(character),
            // Combining accents.
            '\u{300}'..='\u{36f}' => {}
            _ => match spelling(character) {
                Some(letters) => out.push(letters, character.is_uppercase()),
                None => {
                    out.lossy |= character.is_alphanumeric();
                    out.text.push('_');
                }
            },
        }
    }
    out
}

impl Transliteration {
    fn push(&mut self, letters: &str, uppercase: bool) {
        let mut letters = letters.chars();
        if let Some(first) = letters.next() {
            self.text.push(if uppercase { first.to_ascii_uppercase() } else { first });
        }
        self.text.extend(letters);
    }
}

fn spelling(character: char) -> Option<&'static str> {
    // Fullwidth letters are plain letters.
    if ('\u{ff01}'..='\u{ff5e}').contains(&character) {
        const PLAIN: &str = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";
        let at = usize::try_from(u32::from(character) - 0xff01).ok()?;
        return PLAIN.get(at..=at);
    }
    let small = character.to_lowercase().next()?;
    SPELLINGS.iter().find(|(letters, _)| letters.contains(small)).map(|(_, spelling)| *spelling)
}

#[cfg(test)]
mod tests {
    use super::{Transliteration, transliterate};

    #[test]
    fn letters_of_other_scripts_are_spelled_in_latin_ones() {
        for (text, spelling) in [
            ("Überprüfen", "Uberprufen"),
            ("señal", "senal"),
            ("Straße", "Strasse"),
            ("получитьПользователя", "poluchitPolzovatelya"),
            ("λήψηΧρήστη", "lipsiChristi"),
            ("ＡＢＣ１", "ABC1"),
            ("cafe\u{301}", "cafe"),
        ] {
            assert_eq!(transliterate(text), Transliteration { text: spelling.to_owned(), lossy: false });
        }
    }

    #[test]
    fn letters_without_a_spelling_are_told() {
        assert_eq!(transliterate("取得User"), Transliteration { text: "__User".to_owned(), lossy: true });
        assert_eq!(transliterate("a → b"), Transliteration { text: "a _ b".to_owned(), lossy: false });
    }
}
