//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-DjtLn6Pe.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-DjtLn6Pe.js"), gzip: include_bytes!("../../assets/assets/CallRow-DjtLn6Pe.js.gz") },
    File { path: "/assets/CallsView-CcCNlkcP.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-CcCNlkcP.js"), gzip: include_bytes!("../../assets/assets/CallsView-CcCNlkcP.js.gz") },
    File { path: "/assets/ProgramsView-Dkw6WWgc.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-Dkw6WWgc.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-Dkw6WWgc.js.gz") },
    File { path: "/assets/PromptsView-DRJZyyRk.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-DRJZyyRk.js"), gzip: include_bytes!("../../assets/assets/PromptsView-DRJZyyRk.js.gz") },
    File { path: "/assets/ResourcesView-D0hkGkAc.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-D0hkGkAc.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-D0hkGkAc.js.gz") },
    File { path: "/assets/ServersView-BQj16iE7.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-BQj16iE7.js"), gzip: include_bytes!("../../assets/assets/ServersView-BQj16iE7.js.gz") },
    File { path: "/assets/index-CeOzkQNg.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-CeOzkQNg.css"), gzip: include_bytes!("../../assets/assets/index-CeOzkQNg.css.gz") },
    File { path: "/assets/index-CqGCK99x.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-CqGCK99x.js"), gzip: include_bytes!("../../assets/assets/index-CqGCK99x.js.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];
