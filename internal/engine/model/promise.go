package model

import "strings"

// Promise is the word by which a node that is bought for the pod remembers it: its UID and, for a pod that still runs on
// a node which is leaving, that of its controller after a slash, because another pod will have come in its place.
func (p *Pod) Promise() string {
	if p.Node != "" && p.Controller.UID != "" {
		return p.UID + "/" + p.Controller.UID
	}
	return p.UID
}

// NamedBy reports whether a word of Promise is of this pod.
func (p *Pod) NamedBy(word string) bool {
	uid, _, _ := strings.Cut(word, "/")
	return uid == p.UID
}
