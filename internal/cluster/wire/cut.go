package wire

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// message says which fields of a protobuf message are cut out.
type message struct {
	// only says that fields that are not listed are cut out, too.
	only bool
	// fields are those that are kept as they are, or not kept, or cut themselves.
	fields map[protowire.Number]part
}

// part is what becomes of a field: with a message it is cut, otherwise kept if keep says so, never if that is nil.
type part struct {
	of   *message
	keep func([]byte) bool
}

func always([]byte) bool { return true }

// The numbers are those of k8s.io/api/core/v1/generated.proto and apimachinery/pkg/apis/meta/v1/generated.proto.
var (
	kept, gone = part{keep: always}, part{}

	container = &message{only: true, fields: map[protowire.Number]part{
		1: kept /* name */, 6: kept /* ports */, 8: kept /* resources */, 24: kept /* restartPolicy */}}
	containerStatus = &message{only: true, fields: map[protowire.Number]part{
		1: kept /* name */, 10: kept /* allocatedResources */, 11: kept /* resources */}}
	volume = &message{only: true, fields: map[protowire.Number]part{1: kept /* name */, 2: {of: &message{only: true,
		fields: map[protowire.Number]part{10: kept /* persistentVolumeClaim */, 29: kept /* ephemeral */}}}}}

	metadata = &message{fields: map[protowire.Number]part{17: {keep: readManaged}}}
	spec     = &message{fields: map[protowire.Number]part{
		1: {of: volume}, 2: {of: container}, 20: {of: container}, 34: gone, /* ephemeralContainers */
		14: gone /* securityContext */, 15: gone /* imagePullSecrets */, 23: gone /* hostAliases */, 26: gone, /* dnsConfig */
		28: gone /* readinessGates */}}
	status = &message{fields: map[protowire.Number]part{
		5: gone /* hostIP */, 6: gone /* podIP */, 12: gone /* podIPs */, 16: gone, /* hostIPs */
		8: {of: containerStatus}, 10: {of: containerStatus}, 13: gone, /* ephemeralContainerStatuses */
		15: gone /* resourceClaimStatuses */, 18: gone /* extendedResourceClaimStatus */}}
	pod = &message{fields: map[protowire.Number]part{1: {of: metadata}, 2: {of: spec}, 3: {of: status}}}
)

// readManaged reports whether an entry of managed fields may be one that is read.
func readManaged(entry []byte) bool {
	return bytes.Contains(entry, nominations) || bytes.Contains(entry, resizes)
}

var nominations, resizes = []byte(convert.NominationManager), []byte("resize")

// cut appends what is kept of a message to the bytes. It returns false for what is no message.
func (m *message) cut(to, from []byte) ([]byte, bool) {
	for len(from) > 0 {
		number, kind, n := protowire.ConsumeTag(from)
		if n < 0 {
			return to, false
		}
		size := protowire.ConsumeFieldValue(number, kind, from[n:])
		if size < 0 {
			return to, false
		}
		field, value := from[:n+size], from[n:n+size]
		from = from[n+size:]
		p, listed := m.fields[number]
		if !listed && m.only {
			continue
		}
		if !listed || kind != protowire.BytesType {
			to = append(to, field...)
			continue
		}
		value, _ = protowire.ConsumeBytes(value)
		var fine bool
		if to, fine = p.cut(to, field, value); !fine {
			return to, false
		}
	}
	return to, true
}

// cut appends what is kept of a field with bytes.
func (p part) cut(to, field, value []byte) ([]byte, bool) {
	if p.of == nil {
		if p.keep != nil && p.keep(value) {
			to = append(to, field...)
		}
		return to, true
	}
	head := len(field) - len(value)
	begin := len(to) + head
	to, fine := p.of.cut(append(to, field[:head]...), value)
	_, _, n := protowire.ConsumeTag(field)
	putSize(to[begin-head+n:begin], len(to)-begin)
	return to, fine
}

// putSize writes a size into all bytes of the place, which held a larger one: leading zeros are valid.
func putSize(place []byte, size int) {
	for i := range place {
		place[i] = byte(size&0x7f) | 0x80
		size >>= 7
	}
	place[len(place)-1] &^= 0x80
}
