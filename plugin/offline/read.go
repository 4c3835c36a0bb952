package offline

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/plugin/admission"
)

// Every document of every file becomes an object, or a problem that names file, object and field. After a problem,
// the rest is still read.

// readPath reads a file, a folder's files in the order of their names, or standard input. It reports whether the path
// can be read, whatever its content.
func (o *Manifests) readPath(path string, in io.Reader) bool {
	if path == "-" {
		data, err := ReadText(in, 0, LargestFile)
		if err != nil {
			o.problem(fmt.Errorf("%s: %w", nameOf(path), err))
			return false
		}
		o.readAll(nameOf(path), data)
		return true
	}
	about, err := os.Stat(path)
	switch {
	case err != nil:
		o.problem(fmt.Errorf("reading manifests: %w", Readable(err)))
		return false
	case about.IsDir():
		return o.readFolder(path)
	}
	return o.readFile(path)
}

// readFolder reads the manifests of a folder, and the files that workloads of this repository have beside them:
// instance-types.json, and the labels that the provider declares in meta.json.
func (o *Manifests) readFolder(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil {
		o.problem(fmt.Errorf("reading manifests: %w", Readable(err)))
		return false
	}
	found := false
	for _, entry := range entries {
		file := filepath.Join(path, entry.Name())
		switch extension := filepath.Ext(file); {
		case !PlainFile(file) || !slices.Contains([]string{".yaml", ".yml", ".json"}, extension):
		case entry.Name() == "instance-types.json":
			o.typesFile = file
		case entry.Name() == "meta.json":
			o.readMeta(file)
		default:
			found = true
			o.readFile(file)
		}
	}
	if !found {
		o.problem(fmt.Errorf("%s: has no file named *.yaml, *.yml or *.json, want manifests", path))
	}
	return found
}

// PlainFile reports whether a member of a folder is a regular file, or a link to one. Pipes and devices are read only
// if a flag names them.
func PlainFile(path string) bool {
	about, err := os.Stat(path)
	return err != nil || about.Mode().IsRegular() // an error is reported when the file is read
}

// readMeta reads which labels the provider of a folder's types declares.
func (o *Manifests) readMeta(file string) {
	data, err := ReadFile(file)
	if err != nil {
		o.problem(err)
		return
	}
	var meta struct {
		ProviderLabels []string `json:"providerLabels"`
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		o.problem(fmt.Errorf("%s: %w", file, err))
		return
	}
	o.providerLabels = append(o.providerLabels, meta.ProviderLabels...)
}

func (o *Manifests) readFile(file string) bool {
	data, err := ReadFile(file)
	if err != nil {
		o.problem(fmt.Errorf("reading manifests: %w", err))
		return false
	}
	o.readAll(file, data)
	return true
}

// LargestFile is the maximum size of a file in bytes: 1 GiB is a million pods as kubectl prints them. Reading a file
// takes several times its size of memory.
const LargestFile = 1 << 30

// deepestText is the maximum nesting of a text: YAML parsers take memory in proportion to its square.
const deepestText = 1000

// ReadFile reads a file, or returns an error with its name. Devices and endless pipes are files too.
func ReadFile(path string) ([]byte, error) {
	if about, err := os.Stat(path); err == nil && about.Mode()&os.ModeNamedPipe != 0 && !openedPipe(path) {
		return nil, fmt.Errorf("%s: is a pipe, want a file; to read what a program writes: PROGRAM | karpenter ... -f -", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, Readable(err)
	}
	defer file.Close()
	size := int64(0)
	if about, err := file.Stat(); err == nil {
		if size = about.Size(); size > LargestFile {
			return nil, fmt.Errorf("%s: has %d bytes, want at most %d", path, size, LargestFile)
		}
	}
	data, err := ReadText(file, size, LargestFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, Readable(err))
	}
	return data, nil
}

// openedPipe reports whether a pipe was inherited by this process, for example from a shell's process substitution:
// its other end is open, whereas a named pipe in the file system may block.
func openedPipe(path string) bool {
	return strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/") || path == "/dev/stdin"
}

// ReadText reads to the end. It returns an error for data that is not text, or larger than the maximum. It allocates
// memory for the expected size.
func ReadText(in io.Reader, expected, most int64) ([]byte, error) {
	buffered := bufio.NewReader(in)
	if head, _ := buffered.Peek(512); !isText(head) {
		return nil, errors.New(notText(head) + ", want YAML or JSON as UTF-8")
	}
	var data bytes.Buffer
	data.Grow(int(expected) + bytes.MinRead)
	_, err := data.ReadFrom(io.LimitReader(buffered, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(data.Len()) > most:
		return nil, fmt.Errorf("goes on after %d bytes, want less", most)
	case depth(data.Bytes()) > deepestText:
		return nil, fmt.Errorf("is nested more than %d deep", deepestText)
	}
	return data.Bytes(), nil
}

// isText reports whether the beginning of a file can be that of YAML or JSON as UTF-8.
func isText(head []byte) bool {
	return bytes.IndexByte(head, 0) < 0 && !bytes.HasPrefix(head, gzipMagic) && !bytes.HasPrefix(head, []byte{0xff, 0xfe}) &&
		!bytes.HasPrefix(head, []byte{0xfe, 0xff})
}

// gzipMagic are the first bytes of a file that gzip has compressed (https://www.rfc-editor.org/rfc/rfc1952#section-2.3).
var gzipMagic = []byte{0x1f, 0x8b}

// notText describes the beginning of a file that is not text. UTF-16 has a byte order mark or, if it is mostly ASCII, a
// zero byte beside each of the first letters.
func notText(head []byte) string {
	zero := bytes.IndexByte(head, 0)
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		return "is compressed with gzip (gunzip -c FILE prints it)"
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}),
		zero >= 0 && zero < 2 && len(head) > 3 && head[1-zero] != 0 && head[zero+2] == 0 && head[3-zero] != 0:
		return "is text as UTF-16"
	}
	return fmt.Sprintf("is not text (byte 0 at offset %d)", zero)
}

// objectHead holds the fields that determine how an object is read.
type objectHead struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
		Namespace    string `json:"namespace"`
	} `json:"metadata"`
	Items []excerpt `json:"items"`
}

// read adds one object, the members of a list, or the content of a capture.
func (o *Manifests) read(origin string, text []byte) { o.readAs(metav1.TypeMeta{}, origin, text) }

// readAs reads an object whose kind and version follow from a list if the object has none: API servers write them once,
// on the list. For a List of any kinds, nothing follows.
func (o *Manifests) readAs(implied metav1.TypeMeta, origin string, text []byte) {
	var head objectHead
	if err := json.Unmarshal(text, &head); err != nil {
		o.problem(fmt.Errorf("%s: %s", origin, headProblem(text, err)))
		return
	}
	o.documents++
	if head.Kind == "" && implied.Kind != "" {
		implied.APIVersion = cmp.Or(head.APIVersion, implied.APIVersion)
	} else {
		implied = head.TypeMeta
	}
	if implied = servedAs(implied); implied != head.TypeMeta {
		head.TypeMeta, text = implied, withType(text, implied)
	}
	switch {
	case head.Kind == "" || head.APIVersion == "":
		o.problem(fmt.Errorf("%s: apiVersion or kind is missing, want a Kubernetes object", origin))
		return
	case head.TypeMeta == capture.Type:
		o.readCapture(origin, text)
		return
	case strings.HasSuffix(head.Kind, "List"):
		members := metav1.TypeMeta{APIVersion: head.APIVersion, Kind: strings.TrimSuffix(head.Kind, "List")}
		for i, item := range head.Items {
			o.readAs(members, fmt.Sprintf("%s: item %d", origin, i+1), item)
		}
		return
	}
	o.nameAsServer(&head, text)
	origin = fmt.Sprintf("%s: %s %s", origin, head.Kind, namespaced(head.Metadata.Namespace, head.Metadata.Name))
	o.readObject(origin, &head, text)
}

// nameAsServer makes a name of metadata.generateName if the object has no other. It follows from the object, so that the
// order of the input does not matter; of equal objects, each gets its own.
func (o *Manifests) nameAsServer(head *objectHead, text []byte) {
	meta := &head.Metadata
	if meta.Name != "" || meta.GenerateName == "" {
		return
	}
	for copies := 0; meta.Name == "" || o.generated[meta.Name]; copies++ {
		meta.Name = admission.GeneratedName(meta.GenerateName, fmt.Appendf(slices.Clone(text), "%d", copies))
	}
	o.generated[meta.Name] = true
}

// withType returns the text of an object with its kind and version.
func withType(text []byte, kind metav1.TypeMeta) []byte {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(text, &fields) != nil {
		return text
	}
	for name, value := range map[string]string{"kind": kind.Kind, "apiVersion": kind.APIVersion} {
		fields[name], _ = json.Marshal(value) // a string always has a form in JSON
	}
	if typed, err := json.Marshal(fields); err == nil {
		return typed
	}
	return text
}

// readObject adds one object, completed as an API server would complete it.
func (o *Manifests) readObject(origin string, head *objectHead, text []byte) {
	if err := o.boundQuantities(head, text); err != nil {
		o.reject(origin, head, []error{err})
		return
	}
	stored, wrong := admit(head.TypeMeta, text)
	if len(wrong) > 0 {
		o.reject(origin, head, wrong)
		return
	}
	object, _, err := o.decoder.Decode(stored, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err):
		if successor := successorOf(head.TypeMeta); successor != "" {
			o.problem(fmt.Errorf("%s: apiVersion: is %s, which is not read, want %s", origin, head.APIVersion, successor))
			return
		}
		if unknown := unknownKind(head.TypeMeta); unknown != "" {
			o.problem(fmt.Errorf("%s: %s", origin, unknown))
			return
		}
		note, object := "", any(nil)
		if json.Unmarshal(text, &object) == nil && hasPodTemplate(object) {
			note = ": its pods are not known, and not planned"
		}
		o.passOver(head.GroupVersionKind(), note)
	case err != nil:
		o.reject(origin, head, []error{errors.New(decodeProblem(text, err))})
	default:
		if meta, ok := object.(metav1.Object); ok {
			meta.SetName(head.Metadata.Name)
		}
		if !o.refuse(origin, head, object) && o.take(origin, object, false) && o.keep {
			o.given = append(o.given, bytes.Clone(text))
		}
	}
}

// hasPodTemplate reports whether a template with containers is anywhere in an object of a kind that is not read, such as a
// Rollout: it may create pods.
func hasPodTemplate(object any) bool {
	switch object := object.(type) {
	case map[string]any:
		if template, ok := object["template"].(map[string]any); ok {
			spec, _ := template["spec"].(map[string]any)
			if containers, _ := spec["containers"].([]any); len(containers) > 0 {
				return true
			}
		}
		return slices.ContainsFunc(slices.Collect(maps.Values(object)), hasPodTemplate)
	case []any:
		return slices.ContainsFunc(object, hasPodTemplate)
	}
	return false
}

// headProblem describes a value that is not an object, or the invalid fields in its head.
func headProblem(text []byte, err error) string {
	var found any
	if json.Unmarshal(text, &found) == nil {
		switch found.(type) {
		case []any:
			return "is a list, want a Kubernetes object"
		case string:
			return "is a text, want a Kubernetes object"
		case float64, bool:
			return "is " + string(text) + ", want a Kubernetes object"
		}
	}
	return decodeProblem(text, err)
}

// reject reports why an object is set aside. What refers to it gets the same reason.
func (o *Manifests) reject(origin string, head *objectHead, wrong []error) {
	for _, problem := range wrong {
		o.problem(fmt.Errorf("%s: %w", origin, problem))
	}
	if !slices.Contains(admitted, head.TypeMeta) {
		return
	}
	o.seen["*v1."+head.Kind+" /"+head.Metadata.Name] = origin
	switch head.Kind {
	case "NodePool":
		o.refusePool(head.Metadata.Name, wrong[0])
	case awsv1.Kind:
		refused := classOfAWS{wrong: fmt.Errorf("the API server would refuse it: %w", wrong[0])}
		refused.object = &awsv1.EC2NodeClass{}
		o.classesOfAWS[head.Metadata.Name] = refused
	}
}

func namespaced(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Readable removes the path from an error of the file system; the caller adds the file's name. A URL is named as such.
func Readable(err error) error {
	var failed *os.PathError
	if !errors.As(err, &failed) {
		return err
	}
	path := filepath.ToSlash(failed.Path)
	if strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://") {
		return fmt.Errorf("%s: is a URL, want a file; to read it: curl -fsSL %s | kubectl karpenter ... -f -", path, path)
	}
	return fmt.Errorf("%s: %w", path, failed.Err)
}
