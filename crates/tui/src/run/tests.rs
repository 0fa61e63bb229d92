//! What is saved, and how calls are carried out.

use std::sync::Arc;

use super::save;
use crate::message::Contents;

#[test]
fn files_are_saved_and_never_overwritten() {
    let folder = std::env::temp_dir().join(format!("toolyard-ui-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = Contents::Text(Arc::from("words"));
    let first = save(&folder, "result.txt", &text).unwrap();
    let second = save(&folder, "result.txt", &text).unwrap();
    assert_ne!(first, second);
    assert_eq!(std::fs::read_to_string(second).unwrap(), "words");
    let image = save(&folder, "image.png", &Contents::Base64(Arc::from("iVBO\nRw0K"))).unwrap();
    assert_eq!(std::fs::read(&image).unwrap(), b"\x89PNG\r\n");
    assert_eq!(image.extension().unwrap(), "png");
    let wrong = save(&folder, "image.png", &Contents::Base64(Arc::from("%%%"))).unwrap_err();
    assert!(wrong.to_string().starts_with("it is no base64"), "{wrong}");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(save(&folder, "result.txt", &text).is_err());
}
