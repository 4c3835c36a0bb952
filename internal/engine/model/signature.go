package model

import (
	"encoding/binary"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// appendSignature writes everything that scheduling can tell about the pod, each piece with its length, so that two
// pods have equal signatures if and only if no rule can tell them apart as they are written. Labels are not in it: no
// rule of this engine reads a pod's labels yet.
func appendSignature(to []byte, p *PodSpec) []byte {
	to = appendText(to, p.Namespace)
	to = binary.AppendVarint(to, int64(p.Priority))
	to = binary.AppendUvarint(to, uint64(len(p.Requests)))
	for _, a := range p.Requests {
		to = appendText(to, a.Name)
		to = binary.AppendVarint(to, a.Value)
	}
	to = binary.AppendUvarint(to, uint64(len(p.Alternatives)))
	for _, reqs := range p.Alternatives {
		to = appendRequirements(to, reqs)
	}
	to = binary.AppendUvarint(to, uint64(len(p.Tolerations)))
	for _, t := range p.Tolerations {
		to = appendText(to, t.Key)
		to = appendText(to, t.Value)
		to = append(to, byte(t.Effect))
		if t.Exists {
			to = append(to, 1)
		} else {
			to = append(to, 0)
		}
	}
	return to
}

func appendRequirements(to []byte, reqs []label.Requirement) []byte {
	to = binary.AppendUvarint(to, uint64(len(reqs)))
	for _, r := range reqs {
		to = appendText(to, r.Key)
		to = append(to, byte(r.Operator))
		to = binary.AppendUvarint(to, uint64(len(r.Values)))
		for _, v := range r.Values {
			to = appendText(to, v)
		}
	}
	return to
}

func appendText(to []byte, s string) []byte {
	to = binary.AppendUvarint(to, uint64(len(s)))
	return append(to, s...)
}
