//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-iPcPyEqD.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-iPcPyEqD.js"), gzip: include_bytes!("../../assets/assets/CallRow-iPcPyEqD.js.gz") },
    File { path: "/assets/CallsView-CcHUDJx8.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-CcHUDJx8.js"), gzip: include_bytes!("../../assets/assets/CallsView-CcHUDJx8.js.gz") },
    File { path: "/assets/ProgramsView-jc1M0f6p.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-jc1M0f6p.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-jc1M0f6p.js.gz") },
    File { path: "/assets/PromptsView-24feh5Ok.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-24feh5Ok.js"), gzip: include_bytes!("../../assets/assets/PromptsView-24feh5Ok.js.gz") },
    File { path: "/assets/ResourcesView-DAj9M2me.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-DAj9M2me.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-DAj9M2me.js.gz") },
    File { path: "/assets/ServersView-DxlO3CGQ.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-DxlO3CGQ.js"), gzip: include_bytes!("../../assets/assets/ServersView-DxlO3CGQ.js.gz") },
    File { path: "/assets/index-BJ0FSybC.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-BJ0FSybC.js"), gzip: include_bytes!("../../assets/assets/index-BJ0FSybC.js.gz") },
    File { path: "/assets/index-C3yJ79R3.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-C3yJ79R3.css"), gzip: include_bytes!("../../assets/assets/index-C3yJ79R3.css.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];
