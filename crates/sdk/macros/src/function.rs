//! The function under the attribute: whether it can be a tool, and what becomes of it.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, FnArg, ItemFn, Lit, LitStr, Meta, Result, ReturnType, Signature, Type};

use crate::settings::{DescriptionSource, ToolSettings, validate_tool_name};

pub(crate) fn expand(settings: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let settings: ToolSettings = syn::parse2(settings)?;
    let function: ItemFn = syn::parse2(function)?;
    let params = params_type(&function.sig)?;
    let ItemFn { attrs, vis, sig, block, .. } = &function;
    let ident = &sig.ident;
    let name = match settings.name {
        Some(name) => name,
        None => validate_tool_name(LitStr::new(&ident.to_string(), ident.span()))?,
    };
    let mut calls = settings.calls;
    if settings.description_source == DescriptionSource::DocComment
        && let Some(text) = doc_comment(attrs)
    {
        calls.insert(0, quote!(.description(#text)));
    }
    // What says whether and how the item is there goes with the new function, the rest with the code.
    let (outside, inside): (Vec<_>, Vec<_>) = attrs
        .iter()
        .partition(|attr| ["doc", "cfg", "deprecated"].iter().any(|name| attr.path().is_ident(name)));
    // Said here, so that the compiler points at the type that does not fit.
    let takes = params.map(|ty| quote_spanned!(ty.span()=> ::toolyard_sdk::macros::can_be_params::<#ty>();));
    let gives = return_type(sig)
        .map(|ty| quote_spanned!(ty.span()=> ::toolyard_sdk::macros::can_be_returned::<#ty>();));
    Ok(quote! {
        #(#outside)*
        #vis fn #ident() -> ::toolyard_sdk::Tool {
            #(#inside)*
            #sig #block
            #takes
            #gives
            ::toolyard_sdk::Tool::new(#name, #ident) #(#calls)*
        }
    })
}

/// The type of the parameters, if the function has any, once it is known that it can be a tool.
fn params_type(sig: &Signature) -> Result<Option<&Type>> {
    if sig.asyncness.is_none() {
        return Err(Error::new(sig.fn_token.span, "a tool is an async function: write `async fn`"));
    }
    if !sig.generics.params.is_empty() {
        return Err(Error::new_spanned(&sig.generics, "a tool has no generic parameters"));
    }
    let mut types = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Typed(typed) => types.push(&*typed.ty),
            FnArg::Receiver(receiver) => {
                let message = "a tool is a free function; for one that holds state, see `Tool::new`";
                return Err(Error::new_spanned(receiver, message));
            }
        }
    }
    for ty in &types {
        if let Type::Reference(reference) = ty {
            let message = "a tool owns what it gets: take it by value, without `&`";
            return Err(Error::new_spanned(reference, message));
        }
    }
    if matches!(sig.output, ReturnType::Default) {
        return Err(Error::new(sig.ident.span(), "a tool returns `Result<_, ToolError>`"));
    }
    match types[..] {
        [] => Ok(None),
        [one] if is_context(one) => Ok(None),
        [params] => Ok(Some(params)),
        [first, second] if is_context(second) && !is_context(first) => Ok(Some(first)),
        [first, _] if is_context(first) => {
            Err(Error::new_spanned(first, "the parameters come first, then the `Context`"))
        }
        [_, second] => {
            let message = "this can only be the `Context`; put all parameters into one struct";
            Err(Error::new_spanned(second, message))
        }
        [_, _, third, ..] => {
            Err(Error::new_spanned(third, "a tool takes its parameters and a `Context`, and nothing else"))
        }
    }
}

/// The type that is returned, where it can be named: `impl Trait` cannot.
fn return_type(sig: &Signature) -> Option<&Type> {
    let ReturnType::Type(_, ty) = &sig.output else { return None };
    (!ty.to_token_stream().to_string().contains("impl ")).then_some(ty)
}

fn is_context(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Context")
}

/// The text of the doc comment, without the space that follows the slashes.
fn doc_comment(attrs: &[Attribute]) -> Option<String> {
    let line = |attr: &Attribute| match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attrs.iter().filter_map(line).collect();
    let text = lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
