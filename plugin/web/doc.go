// Package web serves the page: the views of a cluster as pictures and tables in a browser.
//
//	Source: Read (a live cluster or a file) --> offline.Overview --+--> picture: canvas, SVG
//	                                                              +--> view.Sheet: table, CSV, JSON
//	token (fragment of the printed address) --> cookie --> every other request
//
// Tables are HTML that needs no script. Pictures of many boxes are painted on a canvas by assets/page.js; all others are
// SVG in the page. The state of a view is its address: format=json, csv or svg gives the same rows in another form.
//
// Nothing is read or computed without a request: an open page keeps a stream, during which the cluster is read
// periodically. Parts that take long are computed in the background for as long as a page asks for them, see job.
//
// What protects the page: it listens on the loopback address only; requests need the cookie, and a Host of this machine
// (against DNS rebinding); requests that change state must come from the page itself; the content security policy lets
// nothing run or load but the two files of the page. Names are text for package markup, textContent and package picture.
//
// The package must not read a cluster itself: the caller does, so that the page can be served from anywhere.
package web
