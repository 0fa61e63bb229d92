//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-CS0vkFAJ.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-CS0vkFAJ.js"), gzip: include_bytes!("../../assets/assets/CallRow-CS0vkFAJ.js.gz") },
    File { path: "/assets/CallsView-CWb-Iu02.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-CWb-Iu02.js"), gzip: include_bytes!("../../assets/assets/CallsView-CWb-Iu02.js.gz") },
    File { path: "/assets/ProgramsView-DWyzSMs2.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-DWyzSMs2.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-DWyzSMs2.js.gz") },
    File { path: "/assets/PromptsView-4cftHRdM.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-4cftHRdM.js"), gzip: include_bytes!("../../assets/assets/PromptsView-4cftHRdM.js.gz") },
    File { path: "/assets/ResourcesView-CuUPnppe.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-CuUPnppe.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-CuUPnppe.js.gz") },
    File { path: "/assets/ServersView-Bt6v_unW.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-Bt6v_unW.js"), gzip: include_bytes!("../../assets/assets/ServersView-Bt6v_unW.js.gz") },
    File { path: "/assets/index-C7GPq6bz.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-C7GPq6bz.js"), gzip: include_bytes!("../../assets/assets/index-C7GPq6bz.js.gz") },
    File { path: "/assets/index-cvwnlj35.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-cvwnlj35.css"), gzip: include_bytes!("../../assets/assets/index-cvwnlj35.css.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];
