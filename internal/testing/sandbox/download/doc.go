// Package download fetches the executables of a release of Kubernetes, and of etcd.
//
//	sums.txt ── Find ──> Archive ── Client.Fetch ──> executables in a folder
//
// What a server says is never trusted: an archive is unpacked only if it has the checksum that sums.txt has, which is part
// of the source tree. A server that cannot be reached, answers with a page or never answers is found out in seconds; a
// connection that breaks later is resumed. Nothing but executables of a checked archive ever has their names.
//
// sums.txt lists the releases, in the format of sha512sum: a checksum (SHA-512 of Kubernetes, SHA-256 of etcd) and the path
// under the location of the releases. Kubernetes publishes the sums in its CHANGELOG files and beside each archive, etcd in
// SHA256SUMS. Pin reads them there. There are no executables of the control plane for other systems than Linux.
//
// The package must know nothing of the sandbox: not what is built, where caches are, nor how components run.
package download
