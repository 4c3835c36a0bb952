// Package fakeapi is an API server for tests of clusters that no machine of a developer can run: 100,000 nodes and a million
// pods. It holds templates and what was written since, not objects.
//
//	Sample: the objects of 20 nodes, as kube-apiserver stored them
//	   |                    times the number of blocks
//	   v
//	shelf (shelf.go) <-- written, deleted objects -- requests (write.go, delete.go)
//	   |  index, newest version, log of changes
//	   v
//	LIST and WATCH (list.go, watch.go): protobuf or JSON, whole objects or metadata (frame.go): bytes of a template with
//	other digits in names, UIDs and references
//
// It answers discovery, LIST with limit and continue, WATCH with bookmarks and sendInitialEvents, GET, POST, PUT, PATCH
// (merge, strategic merge, JSON), DELETE with preconditions and finalizers, the subresources status, eviction and binding,
// and Leases. Faults (fault.go) are set and requests are counted over HTTP, under /fake/, so that a controller in another
// process can be measured alone: command test/fakeapi serves one.
//
// What it leaves out, and a test must not depend on: authentication and permissions, admission, defaults and validation, garbage
// collection, controllers, server-side apply, tables. All pages of a list show the newest state, not that of the first one.
// TestLikeReal compares it with kube-apiserver.
//
// It must not know the controller: no package of this repository is imported but the API types.
package fakeapi
