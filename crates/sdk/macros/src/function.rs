//! Validation and expansion of the annotated function.

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
    // Attributes that apply to the item stay on the generated function, the others move to the
    // original one.
    let (outside, inside): (Vec<_>, Vec<_>) = attrs
        .iter()
        .partition(|attr| ["doc", "cfg", "deprecated"].iter().any(|name| attr.path().is_ident(name)));
    // These calls make the compiler point at a type that does not fit.
    let takes =
        params.map(|ty| quote_spanned!(ty.span()=> ::toolyard_sdk::__private::assert_params::<#ty>();));
    let gives = return_type(sig)
        .map(|ty| quote_spanned!(ty.span()=> ::toolyard_sdk::__private::assert_return_type::<#ty>();));
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

/// Validates the signature and returns the type of the parameters, if there are any.
fn params_type(sig: &Signature) -> Result<Option<&Type>> {
    if sig.asyncness.is_none() {
        return Err(Error::new(sig.fn_token.span, "a tool must be an `async fn`"));
    }
    if !sig.generics.params.is_empty() {
        return Err(Error::new_spanned(&sig.generics, "a tool cannot have generic parameters"));
    }
    let mut types = Vec::new();
    for input in &sig.inputs {
        match input {
            FnArg::Typed(typed) => types.push(&*typed.ty),
            FnArg::Receiver(receiver) => {
                let message = "a tool must be a free function; use `Tool::new` for a tool with state";
                return Err(Error::new_spanned(receiver, message));
            }
        }
    }
    for ty in &types {
        if let Type::Reference(reference) = ty {
            let message = "a tool takes its arguments by value; remove the `&`";
            return Err(Error::new_spanned(reference, message));
        }
    }
    if matches!(sig.output, ReturnType::Default) {
        return Err(Error::new(sig.ident.span(), "a tool must return `Result<_, ToolError>`"));
    }
    match types[..] {
        [] => Ok(None),
        [one] if is_context(one) => Ok(None),
        [params] => Ok(Some(params)),
        [first, second] if is_context(second) && !is_context(first) => Ok(Some(first)),
        [first, _] if is_context(first) => {
            Err(Error::new_spanned(first, "the parameters must come before the `Context`"))
        }
        [_, second] => {
            let message = "expected `Context`; put all parameters into one struct";
            Err(Error::new_spanned(second, message))
        }
        [_, _, third, ..] => {
            Err(Error::new_spanned(third, "a tool takes at most its parameters and a `Context`"))
        }
    }
}

/// Returns the return type, unless it contains `impl Trait`, which cannot be named.
fn return_type(sig: &Signature) -> Option<&Type> {
    let ReturnType::Type(_, ty) = &sig.output else { return None };
    (!ty.to_token_stream().to_string().contains("impl ")).then_some(ty)
}

fn is_context(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Context")
}

/// Returns the text of the doc comment without the space after the slashes.
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
