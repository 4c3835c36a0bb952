package fakeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/karpenter-go/karpenter/api"
)

// firstVersion is the version of the sample's objects.
const firstVersion = 1000

var (
	scheme = func() *runtime.Scheme {
		s, err := api.NewScheme()
		utilruntime.Must(err)
		utilruntime.Must(apiextensionsv1.AddToScheme(s))
		return s
	}()
	codecs  = serializer.NewCodecFactory(scheme)
	decoder = codecs.UniversalDeserializer()
)

// Options are what the server holds.
type Options struct {
	// Sample is copied Blocks times; without one the server is empty.
	Sample *Sample
	Blocks int
	// Minor is the minor version that /version says.
	Minor int
}

// Server is an http.Handler that answers as kube-apiserver does.
type Server struct {
	options Options
	mutex   sync.RWMutex
	kinds   []*kind
	shelves map[schema.GroupVersionResource]*shelf
	// version is that of the last change.
	version uint64
	faults  faults
	counts  counts
}

// New returns a server with the objects of a sample.
func New(options Options) (*Server, error) {
	all, err := kinds(scheme)
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, kinds: all, shelves: map[schema.GroupVersionResource]*shelf{}, version: firstVersion}
	s.faults.changed = make(chan struct{})
	for _, k := range all {
		s.shelves[k.GroupVersion().WithResource(k.resource)] = newShelf(k, &s.mutex)
	}
	if options.Sample != nil {
		if err := s.load(options.Sample); err != nil {
			return nil, fmt.Errorf("loading the sample: %w", err)
		}
	}
	for _, shelf := range s.shelves {
		shelf.since = firstVersion
		shelf.fill()
	}
	return s, nil
}

// load makes templates of the sample's objects.
func (s *Server) load(sample *Sample) error {
	variables := sample.variables()
	for i, part := range [][]Stored{sample.Once, sample.Each} {
		for _, stored := range part {
			o, err := s.template(stored)
			if err != nil {
				return fmt.Errorf("%s: %w", stored.Key, err)
			}
			shelf := s.shelves[o.kind.GroupVersion().WithResource(o.kind.resource)]
			if i == 0 {
				shelf.once = append(shelf.once, o)
				continue
			}
			text, err := o.content.MarshalJSON()
			if err != nil {
				return err
			}
			o.variables = occurring(text, variables)
			shelf.each, shelf.blocks = append(shelf.each, o), s.options.Blocks
		}
	}
	return nil
}

// template decodes a stored object.
func (s *Server) template(stored Stored) (*object, error) {
	content, err := decode(stored.Value)
	if err != nil {
		return nil, err
	}
	for _, k := range s.kinds {
		if k.GroupVersionKind == content.GroupVersionKind() {
			return (&object{kind: k, content: content}).versioned(firstVersion), nil
		}
	}
	return nil, fmt.Errorf("the server has no kind %s", content.GroupVersionKind())
}

// decode reads an object in protobuf or JSON.
func decode(text []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if len(text) > 0 && text[0] == '{' {
		return u, u.UnmarshalJSON(text)
	}
	typed, gvk, err := decoder.Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(*gvk)
	return u, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/fake/"):
		s.control(w, r)
	case path == "/version":
		minor := fmt.Sprint(s.options.Minor)
		answer(w, http.StatusOK, version.Info{Major: "1", Minor: minor, GitVersion: "v1." + minor + ".0"})
	case path == "/healthz", path == "/readyz", path == "/livez":
		fmt.Fprint(w, "ok")
	case path == "/api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		answer(w, http.StatusOK, groups(s.kinds))
	default:
		s.resource(w, r)
	}
}

// resource answers a request for objects, or for the kinds of a group.
func (s *Server) resource(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	gv := schema.GroupVersion{}
	switch {
	case parts[0] == "api" && len(parts) > 1:
		gv.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 2:
		gv.Group, gv.Version, parts = parts[1], parts[2], parts[3:]
	default:
		http.NotFound(w, r)
		return
	}
	if len(parts) == 0 {
		if list := discovered(s.kinds, gv); len(list.APIResources) > 0 {
			answer(w, http.StatusOK, list)
			return
		}
		http.NotFound(w, r)
		return
	}
	q := request{Request: r, Server: s}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.shelf = s.shelves[gv.WithResource(parts[0])]
	if q.shelf == nil {
		http.NotFound(w, r)
		return
	}
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.sub = parts[2]
	}
	q.answer(w)
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, code int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// refuse writes an error as a Status.
func refuse(w http.ResponseWriter, err error) {
	var known interface{ Status() metav1.Status }
	if !errors.As(err, &known) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(details.RetryAfterSeconds))
	}
	answer(w, int(status.Code), status)
}
