//go:build nokubernetes

package main

// released are the components of a release of Kubernetes, which were downloaded instead of built.
var released []component
