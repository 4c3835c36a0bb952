package fakeapi

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Stored is an object in kube-apiserver's storage format: protobuf for built-in kinds, else JSON.
type Stored struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// Sample is a small cluster as it is stored, which is copied to create larger ones: block after block the same objects
// under other names. All names and UIDs are replaced by others of the same length wherever they occur, including owner
// references, nodes of pods and records of machines. The size remains the same, and nothing must be decoded.
type Sample struct {
	Once []Stored // objects that exist once in any cluster: the pool, its class, the DaemonSets and their namespace
	Each []Stored // objects that every block has for itself
	// These are the texts of block 0 that are replaced.
	Claims, DaemonPods, UIDs []string
	Nodes, Pods              []string // names; pods are those of the first block's namespace
}

// Namespace is the format of the namespace of a block's pods; the number is that of the block.
const Namespace = "block-%04d"

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// UIDsOf returns the UIDs in the objects, in order, except those in but.
func UIDsOf(objects []Stored, but []string) []string {
	found := map[string]bool{}
	for _, object := range objects {
		for _, uid := range uidPattern.FindAll(object.Value, -1) {
			found[string(uid)] = true
		}
	}
	for _, uid := range but {
		delete(found, uid)
	}
	return slices.Sorted(maps.Keys(found))
}

// variable is a text of block 0 whose last digits are others in other blocks: those of block*of+index.
type variable struct {
	text        string
	base, width int
	index, of   int
}

// digits appends the last digits in a block.
func (v *variable) digits(to []byte, block int) []byte {
	var number [64]byte
	digits := strconv.AppendInt(number[:0], int64(block*v.of+v.index), v.base)
	for range v.width - len(digits) {
		to = append(to, '0')
	}
	return append(to, digits...)
}

// variables returns the texts that differ between blocks.
func (s *Sample) variables() []variable {
	var all []variable
	for _, kind := range []struct {
		names       []string
		base, width int
	}{{s.UIDs, 16, 12}, {s.Claims, 36, 5}, {s.DaemonPods, 36, 5}, {[]string{fmt.Sprintf(Namespace, 0)}, 10, 4}} {
		for i, name := range kind.names {
			all = append(all, variable{text: name, base: kind.base, width: kind.width, index: i, of: len(kind.names)})
		}
	}
	return all
}

// replacer replaces the texts of block 0 by those of another block.
func replacer(variables []variable, block int) *strings.Replacer {
	if block == 0 {
		return strings.NewReplacer()
	}
	var pairs []string
	for i := range variables {
		v := &variables[i]
		pairs = append(pairs, v.text, string(v.digits([]byte(v.text[:len(v.text)-v.width]), block)))
	}
	return strings.NewReplacer(pairs...)
}

// Names replaces the names of block 0 by those of another block.
func (s *Sample) Names(block int) *strings.Replacer { return replacer(s.variables(), block) }

// Block returns the objects of a block.
func (s *Sample) Block(number int) []Stored {
	names, objects := s.Names(number), make([]Stored, 0, len(s.Each))
	for _, object := range s.Each {
		objects = append(objects, Stored{[]byte(names.Replace(string(object.Key))), []byte(names.Replace(string(object.Value)))})
	}
	return objects
}
