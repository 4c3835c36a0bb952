// Package schemas writes JSON schemas of what users write and of what the plugin prints, and checks that they hold:
//
//	docs/reference/schemas/GROUP/KIND_VERSION.json    the custom resources, from their definitions
//	docs/reference/schemas/output/VERB.json           the documents of -o json and -o yaml, from the Go types
//
// The names of the first are those that kubeconform expects
// (https://github.com/yannh/kubeconform#overriding-schemas-location). It is tests only: `make reference` runs them with
// -update. It must not know how the documents are made.
package schemas
