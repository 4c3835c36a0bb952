// Package markup executes the templates of pages, in the syntax of package html/template and with its escaping, but without
// calling methods.
//
//	text/template/parse ── trees ──> run (values by reflection) ── output ──> escape (where in the page is it?) ── bytes
//
// html/template finds methods by names that are known at run time only. A program that uses it has every exported method of
// every type, because the linker cannot know which are called: 50 MB of the plugin were clients of AWS and types of Kubernetes
// that nothing calls. Here templates have fields and functions.
//
// A value is escaped by its place: text, a quoted attribute, an attribute that is an address, or the content of title and
// textarea. Anywhere else (a script, an attribute of an event, a name, a value without quotes) it is an error and no bytes
// are written. HTML and CSS say of a text that it is escaped already. The tests compare the output with that of html/template.
//
// Actions: fields, variables, if, else, with, range over slices and maps, template, and functions, of which eq, ne, not, and,
// or, gt, ge, len, index and printf are always there. Pipelines of more than one command are refused.
//
// The package must know nothing of pages, clusters or requests.
package markup
