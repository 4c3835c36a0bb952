package model

import "strings"

// Promise returns the entry by which a claim that is created for the pod identifies it: the UID of the pod and, for a
// pod that still runs on a node being removed, a slash and the UID of its controller, because its successor will have
// another UID.
func (p *Pod) Promise() string {
	if p.Node != "" && p.Controller.UID != "" {
		return p.UID + "/" + p.Controller.UID
	}
	return p.UID
}

// NamedBy reports whether an entry of Promise belongs to this pod.
func (p *Pod) NamedBy(word string) bool {
	uid, _, _ := strings.Cut(word, "/")
	return uid == p.UID
}
