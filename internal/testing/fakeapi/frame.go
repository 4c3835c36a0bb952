package fakeapi

import (
	"encoding/binary"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// protobufMagic begins each message of kube-apiserver in protobuf
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding).
const protobufMagic = "k8s\x00"

// tag appends the tag and the length of a field of bytes; the bytes follow.
func tag(to []byte, number, length int) []byte {
	to = binary.AppendUvarint(to, uint64(number<<3|2))
	return binary.AppendUvarint(to, uint64(length))
}

func stringField(to []byte, number int, value string) []byte {
	return append(tag(to, number, len(value)), value...)
}

// named returns the group and version, and the kind, that an answer has.
func (f form) named(k *kind, suffix string) (apiVersion, name string) {
	if f.metadata {
		return "meta.k8s.io/v1", "PartialObjectMetadata" + suffix
	}
	return k.GroupVersion().String(), k.Kind + suffix
}

// envelope returns what precedes an object of that many bytes in protobuf: runtime.Unknown with its type.
func envelope(k *kind, f form, suffix string, length int) []byte {
	apiVersion, name := f.named(k, suffix)
	meta := stringField(stringField(nil, 1, apiVersion), 2, name)
	return tag(append(tag([]byte(protobufMagic), 1, len(meta)), meta...), 2, length)
}

// event appends what a watch sends for an object.
func event(to []byte, what watch.EventType, r ref, f form) []byte {
	item := r.append(nil, f)
	if f.protobuf {
		return wrapped(to, what, append(envelope(r.kind, f, "", len(item)), item...))
	}
	return append(append(append(to, fmt.Sprintf(`{"type":%q,"object":`, what)...), item...), "}\n"...)
}

// wrapped appends a frame with a metav1.WatchEvent in protobuf.
func wrapped(to []byte, what watch.EventType, object []byte) []byte {
	extension := append(tag(nil, 1, len(object)), object...)
	message := append(tag(stringField(nil, 1, string(what)), 2, len(extension)), extension...)
	to = binary.BigEndian.AppendUint32(to, uint32(len(message)))
	return append(to, message...)
}

// bookmark appends a bookmark, which ends the initial events of a list that a watch sends.
func bookmark(to []byte, k *kind, f form, at metav1.ObjectMeta) []byte {
	content := &metav1.PartialObjectMetadata{ObjectMeta: at}
	if f.protobuf {
		item, _ := content.Marshal() // its only field is the first of all kinds: their metadata
		return wrapped(to, watch.Bookmark, append(envelope(k, f, "", len(item)), item...))
	}
	apiVersion, name := f.named(k, "")
	line := fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q,"creationTimestamp":null`,
		name, apiVersion, at.ResourceVersion)
	if at.Annotations != nil {
		line += fmt.Sprintf(`,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey)
	}
	return append(to, line+"}}}\n"...)
}
