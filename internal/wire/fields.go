package wire

import (
	"reflect"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// fields are the names of the fields that cost more than the length of their text. They are found from the Go types, so
// a field that is new in a version of Kubernetes is known as soon as its type is.
type fields struct {
	// amounts are quantities themselves; of amountMaps, the members are. durations and durationMaps are those that
	// time.ParseDuration reads. It returns an error for values beyond its range.
	amounts, amountMaps, durations, durationMaps map[string]bool
	// texts are maps of texts, such as labels. Their members are nothing else.
	texts map[string]bool
	seen  map[reflect.Type]bool
}

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	durationType = reflect.TypeFor[metav1.Duration]()
	knownFields  = sync.OnceValue(func() *fields {
		f := &fields{amounts: map[string]bool{}, amountMaps: map[string]bool{}, durations: map[string]bool{}, durationMaps: map[string]bool{},
			texts: map[string]bool{}, seen: map[reflect.Type]bool{}}
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, nodev1.AddToScheme,
			policyv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme, karpv1.AddToScheme, karpv1alpha5.AddToScheme,
			awsv1.AddToScheme, awsv1alpha1.AddToScheme, kwokv1alpha1.AddToScheme} {
			if err := add(scheme); err != nil {
				panic("registering kinds: " + err.Error())
			}
		}
		for _, kind := range scheme.AllKnownTypes() {
			f.find(kind)
		}
		for name := range f.texts {
			if f.amountMaps[name] || f.durationMaps[name] {
				delete(f.texts, name)
			}
		}
		return f
	})
)

// find adds the fields of a type and of the types of its fields.
func (f *fields) find(of reflect.Type) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		f.find(of.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if f.seen[of] || of == quantityType || of == durationType {
		return
	}
	f.seen[of] = true
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		f.add(name, field.Type)
		f.find(field.Type)
	}
}

// add adds a field to the sets that its type belongs to.
func (f *fields) add(name string, of reflect.Type) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	switch {
	case isMap(of, quantityType):
		f.amountMaps[name] = true
	case isMap(of, durationType):
		f.durationMaps[name] = true
	case isMap(of, reflect.TypeFor[string]()):
		f.texts[name] = true
	case of == quantityType:
		f.amounts[name] = true
	case of == durationType:
		f.durations[name] = true
	}
}

func isMap(of, member reflect.Type) bool { return of.Kind() == reflect.Map && of.Elem() == member }

// pairs returns how many members the objects of a tree have together.
func pairs(value any) int {
	n := 0
	switch value := value.(type) {
	case map[string]any:
		n = len(value)
		for _, member := range value {
			n += pairs(member)
		}
	case []any:
		for _, member := range value {
			n += pairs(member)
		}
	}
	return n
}

// repeats reports whether an object of the document has two members of the same name. The tree has the last one of them
// only; a decoder parses both.
func repeats(document []byte, tree any) bool {
	colons := 0
	outsideStrings(document, func(c byte) {
		if c == ':' {
			colons++
		}
	})
	return colons != pairs(tree)
}

// outsideStrings calls do for the bytes of a JSON text that are not part of a string.
func outsideStrings(text []byte, do func(byte)) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted:
			do(c)
		}
	}
}
