package model

import (
	"encoding/binary"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// appendSignature encodes all properties of the pod that scheduling depends on, each with its length, so that two
// pods have equal signatures if and only if no rule distinguishes them. Labels and tolerations are not included: labels
// matter only through the selectors that select the pod, and tolerations only through the taints that they match. Both
// change with other objects.
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
	to = appendConstraints(to, p)
	if p.Virtual != "" {
		to = appendText(to, p.Virtual)
	}
	return to
}

// appendConstraints encodes the properties that most pods do not have; it adds a single byte for those pods.
func appendConstraints(to []byte, p *PodSpec) []byte {
	if len(p.VolumeAlternatives)+len(p.Volumes)+len(p.Preferred)+len(p.Spread)+len(p.Terms)+len(p.HostPorts) == 0 {
		return append(to, 0)
	}
	to = append(to, 1)
	to = binary.AppendUvarint(to, uint64(len(p.VolumeAlternatives)))
	for _, reqs := range p.VolumeAlternatives {
		to = appendRequirements(to, reqs)
	}
	to = binary.AppendUvarint(to, uint64(len(p.Volumes)))
	for _, v := range p.Volumes {
		to = appendText(to, v.Driver)
		to = appendBool(to, v.Shared)
		if v.Shared {
			to = appendText(to, v.Claim)
			to = appendBool(to, v.Exclusive)
			to = appendBool(to, v.Waits)
		}
	}
	to = binary.AppendUvarint(to, uint64(len(p.Preferred)))
	for _, q := range p.Preferred {
		to = binary.AppendVarint(to, int64(q.Weight))
		to = appendRequirements(to, q.Requirements)
	}
	to = binary.AppendUvarint(to, uint64(len(p.Spread)))
	for i := range p.Spread {
		to = appendSpread(to, &p.Spread[i])
	}
	to = binary.AppendUvarint(to, uint64(len(p.Terms)))
	for i := range p.Terms {
		t := &p.Terms[i]
		to = appendText(to, t.Key)
		to = appendBool(to, t.Anti)
		to = binary.AppendVarint(to, int64(t.Weight))
		to = appendBool(to, t.Together)
		to = appendSelector(to, &t.Selector)
	}
	to = binary.AppendUvarint(to, uint64(len(p.HostPorts)))
	for _, port := range p.HostPorts {
		to = appendText(to, port.IP)
		to = appendText(to, port.Protocol)
		to = binary.AppendVarint(to, int64(port.Port))
	}
	return to
}

func appendSpread(to []byte, s *Spread) []byte {
	to = appendText(to, s.Key)
	to = binary.AppendVarint(to, int64(s.MaxSkew))
	to = binary.AppendVarint(to, int64(s.MinDomains))
	to = appendBool(to, s.Soft)
	to = appendBool(to, s.IgnoreAffinity)
	to = appendBool(to, s.HonorTaints)
	return appendSelector(to, &s.Selector)
}

func appendSelector(to []byte, s *Selector) []byte {
	to = appendBool(to, s.Nothing)
	to = appendBool(to, s.AllNamespaces)
	to = binary.AppendUvarint(to, uint64(len(s.Namespaces)))
	for _, namespace := range s.Namespaces {
		to = appendText(to, namespace)
	}
	return appendRequirements(to, s.Requirements)
}

func appendBool(to []byte, b bool) []byte {
	if b {
		return append(to, 1)
	}
	return append(to, 0)
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
