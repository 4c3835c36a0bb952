package migrate

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/legacy/settings"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
)

// Options contains information that is not in manifests.
type Options struct {
	// ClusterName and InstanceProfile are what objects from before v1beta1 read from the controller's settings. They
	// are for input without values and without the ConfigMap karpenter-global-settings, which contain them too, and
	// take precedence.
	ClusterName, InstanceProfile string
	// KubernetesMinor is the minor version of the cluster, such as 34, or 0 if unknown.
	KubernetesMinor int
	// Kwok means that machines are simulated.
	Kwok bool
	// HonorSafeToEvict means that the annotation with which pods prevent the Cluster Autoscaler from removing their
	// node is kept effective. This is always the case if the Cluster Autoscaler is in the input.
	HonorSafeToEvict bool
	// Workloads means that objects of other kinds in a cluster (File.Live) are printed too, if they change.
	Workloads bool
	// InstanceTypes returns the known EC2 types. Nil means none. It is called if a node group names types.
	InstanceTypes func() []InstanceType
	// Check returns why an API server would reject a printed object, given as decoded JSON, or why the controller would
	// refuse it. Nil disables the check.
	Check func(object map[string]any) []Fault
}

// Fault is one reason why an API server would reject an object, or the controller refuse it.
type Fault struct {
	Field   string // path; empty: the whole object
	Problem string // the problem and its correction
}

// Result is the result of a migration.
type Result struct {
	// Manifests are the documents, in their order, and those created from them.
	Manifests []byte
	// Values are the chart's values that follow from the ConfigMap karpenter-global-settings, empty without one.
	Values []byte
	// Report has an entry for each object.
	Report Report
	// Changed reports whether the manifests differ from the input, or should.
	Changed bool
}

// Run migrates the documents of all files to v1 and returns the result.
func Run(files []File, options Options) Result {
	m := migration{options: options}
	m.settings = known{clusterName: options.ClusterName, defaultInstanceProfile: options.InstanceProfile}
	for _, file := range files {
		for _, d := range split(file) {
			m.read(d)
		}
	}
	m.sources()
	for _, i := range m.items {
		m.item(i)
	}
	m.translate()
	m.kubelets()
	m.propose()
	m.unique()
	m.check()
	m.expressions()
	m.placeholders()
	return m.result()
}

// migration is the state of a migration.
type migration struct {
	options  Options
	settings known
	all      []*document
	items    []*item
	values   []byte
	charts   []chartValues
	scaler   *autoscaler
}

// item is one object.
type item struct {
	*document
	*Entry
	apiVersion, kind, name string
}

func (i *item) is(group, kind string) bool {
	return i.kind == kind && strings.HasPrefix(i.apiVersion, group+"/")
}

// read reads a document. Lists are split if one of their members is relevant.
func (m *migration) read(d *document) {
	err := d.parse()
	if err == nil && isList(d.root) && m.readList(d) {
		return
	}
	m.adopt(d, err)
}

// adopt creates an item from a parsed document.
func (m *migration) adopt(d *document, err error) {
	m.all = append(m.all, d)
	entry := &Entry{Origin: d.origin, Object: "text"}
	switch {
	case err != nil:
		d.root = nil
		entry.note(Impossible, "", "is not YAML: %s (render templates first)", err)
	case d.root == nil:
		return // comments
	case d.root.Kind != yaml.MappingNode:
		entry.note(Impossible, "", "is not an object")
	}
	m.add(d, entry)
}

func (m *migration) add(d *document, entry *Entry) {
	i := &item{document: d, Entry: entry, apiVersion: text(at(d.root, "apiVersion")), kind: text(at(d.root, "kind")),
		name: text(at(d.root, "metadata", "name"))}
	if i.kind != "" {
		entry.Object = strings.TrimSpace(i.kind + " " + nameOf(d.root))
	}
	m.items = append(m.items, i)
}

// nameOf returns an object's name with its namespace.
func nameOf(root *yaml.Node) string {
	name := text(at(root, "metadata", "name"))
	if name == "" {
		name = text(at(root, "metadata", "generateName"))
	}
	if namespace := text(at(root, "metadata", "namespace")); namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// sources reads what other documents depend on.
func (m *migration) sources() {
	for _, i := range m.items {
		values, key := valuesIn(i.root)
		switch {
		case key != "":
			i.Object = "values of a chart that depends on the chart"
			m.valuesOfChart(i, &document{root: values}, key)
		case values != nil:
			i.Object = "values of the chart"
			m.valuesOfChart(i, i.document, "")
		case isSettings(i.root):
			m.globalSettings(i)
		default:
			m.embedded(i)
		}
	}
	m.findPatches()
	m.findAutoscaler()
}

// globalSettings creates values from the readable settings of the ConfigMap.
func (m *migration) globalSettings(i *item) {
	data := map[string]string{}
	for _, key := range fields(at(i.root, "data")) {
		data[key] = text(at(i.root, "data", key))
	}
	readable := clone(at(i.root, "data"))
	old := settings.FromConfigMap(data)
	for _, mistake := range old.Mistakes {
		i.note(Impossible, "data["+mistake.From+"]", "%s; omitted", mistake.Problem)
		take(readable, mistake.From)
	}
	for _, name := range old.Unknown {
		i.note(Impossible, "data["+name+"]", "unknown setting; omitted; it is misspelled, or a setting of another program")
		take(readable, name)
	}
	values := &document{root: valuesOf(readable), anew: true}
	r := repair{document: values, Entry: i.Entry}
	m.settings = m.settings.over(r.values())
	i.gone = true
	i.Became = []string{"values of the chart"}
	if empty(values.root) {
		return
	}
	i.note(Changed, "data", "is converted to values of the chart; a comment contains them")
	m.values = []byte(encode(values.root, false))
	comment := "# The ConfigMap " + GlobalSettings + " is converted to these values of the chart:\n#\n"
	for line := range strings.Lines(string(m.values)) {
		comment += "#   " + line
	}
	i.after = append(i.after, &document{text: comment})
}

// kinds contains the groups of this project's kinds; tutorials confuse them.
var kinds = map[string]string{
	"NodePool": karpv1.Group, "NodeClaim": karpv1.Group, "Provisioner": karpv1.Group, "Machine": karpv1.Group,
	"EC2NodeClass": awsv1.Group, "AWSNodeTemplate": awsv1.Group, kwokv1alpha1.Kind: kwokv1alpha1.Group,
}

// printed contains the versions in which objects of this project's kinds are printed.
var printed = map[string][]string{
	karpv1.GroupVersion.String():             {"NodePool", "NodeClaim"},
	karpv1alpha1.GroupVersion.String():       {karpv1alpha1.Kind},
	autoscalingv1beta1.GroupVersion.String(): {autoscalingv1beta1.Kind, autoscalingv1beta1.KindQuota},
	awsv1.GroupVersion.String():              {"EC2NodeClass"},
	kwokv1alpha1.GroupVersion.String():       {kwokv1alpha1.Kind},
}

// firstGroup is the group of the first Provisioners, of 2021, which v1alpha3 replaced.
const firstGroup = "provisioning.karpenter.sh"

// item migrates one object, unless that requires several objects.
func (m *migration) item(i *item) {
	if values, _ := valuesIn(i.root); i.root == nil || i.root.Kind != yaml.MappingNode || i.gone || values != nil {
		return
	}
	if i.is(firstGroup, "Provisioner") {
		i.note(Advice, "apiVersion", "is %s, which karpenter.sh/v1alpha3 replaced in 2021 and no cluster serves; not migrated; "+
			"write a NodePool and a node class", i.apiVersion)
		return
	}
	if group := gated[i.kind]; group != "" && i.is(group, i.kind) {
		i.note(Advice, "", "is read only with the feature gate %[1]s (chart: settings.featureGates.%[2]s), which is off by default",
			i.kind, strings.ToLower(i.kind[:1])+i.kind[1:])
		return
	}
	if group, known := kinds[i.kind]; known && (strings.HasPrefix(i.apiVersion, "karpenter.") || !strings.Contains(i.apiVersion, "/")) {
		m.version(i, group)
	}
	r := repair{document: i.document, Entry: i.Entry, beta: strings.HasSuffix(i.apiVersion, "/v1beta1")}
	switch {
	case i.is(karpv1.Group, "NodePool"):
		r.serverFields()
		r.pool()
		r.toV1(nil)
	case i.is(awsv1.Group, "EC2NodeClass"):
		r.serverFields()
		r.class()
		r.toV1(nil)
		r.supported(m.options.KubernetesMinor)
	case i.is(kwokv1alpha1.Group, kwokv1alpha1.Kind):
		r.serverFields()
	case i.is(karpv1.Group, "NodeClaim"):
		r.toV1(m.expiry)
	case i.is(karpv1.Group, "Machine"):
		i.gone = true
		i.note(Changed, "", "is an internal object of an older controller; omitted")
	case i.is(karpv1.Group, "Provisioner"), i.is(awsv1.Group, "AWSNodeTemplate"):
		r.lastApplied() // translated together, later; their age and their managers matter
		r.provisioner()
	case i.kind == "Node" && i.apiVersion == "v1":
		i.gone = m.scaler != nil // they describe groups, and are not manifests
	default:
		m.other(i)
	}
}

// other replaces old names in an object of another kind.
func (m *migration) other(i *item) {
	if i.live {
		r := repair{document: i.document, Entry: i.Entry}
		r.bare(i.kind)
	}
	scaler := m.scaler != nil && m.scaler.item == i // it keeps its node until its removal
	p := pods{document: i.document, Entry: i.Entry, honor: (m.options.HonorSafeToEvict || m.scaler != nil) && !scaler}
	p.walk(i.root, "")
	p.workload(i.kind)
	if len(i.edits) > 0 || strings.HasPrefix(i.apiVersion, "apps/") || i.apiVersion == "v1" && i.kind == "Pod" {
		p.selectorValues(i.root)
	}
	if !i.live || !i.changed() {
		return
	}
	const source = "it is better to change the manifests from which it was created"
	restarts := "applying it restarts its pods"
	if at(i.root, "spec", "template") == nil {
		restarts = "pods that it creates later get the current names"
	}
	if m.options.Workloads {
		i.note(Advice, "", "is printed without replicas and without fields that the API server adds; %s; %s", restarts, source)
	} else {
		i.note(Advice, "", "is not printed; --workloads prints it; %s; %s", restarts, source)
	}
}

// version repairs a version that the kind does not have.
func (m *migration) version(i *item, group string) {
	_, version, _ := strings.Cut(i.apiVersion, "/")
	known := map[string][]string{
		"NodePool": {"v1beta1", "v1"}, "NodeClaim": {"v1beta1", "v1"}, "EC2NodeClass": {"v1beta1", "v1"},
		"Provisioner": {"v1alpha5", "v1alpha4", "v1alpha3"}, "Machine": {"v1alpha5"}, "AWSNodeTemplate": {"v1alpha1"},
		kwokv1alpha1.Kind: {kwokv1alpha1.GroupVersion.Version},
	}[i.kind]
	wanted := version
	if !slices.Contains(known, version) {
		wanted = known[0]
		if i.kind == "NodePool" && (at(i.root, "spec", "template", "spec", "nodeClassRef", "group") != nil || at(i.root,
			"spec", "template", "spec", "expireAfter") != nil) {
			wanted = "v1"
		}
		if i.kind == "EC2NodeClass" && at(firstOf(at(i.root, "spec", "amiSelectorTerms")), "alias") != nil {
			wanted = "v1"
		}
	}
	if wanted = group + "/" + wanted; wanted != i.apiVersion {
		if i.apiVersion == "" {
			i.note(Repaired, "apiVersion", "is required; set to %s", wanted)
		} else {
			i.note(Repaired, "apiVersion", "is %s, which has no kind %s; set to %s", i.apiVersion, i.kind, wanted)
		}
		set(i.root, scalar(wanted), "apiVersion")
		i.apiVersion, i.anew = wanted, true
	}
}

// serverFields removes the fields that an API server adds to objects.
func (r *repair) serverFields() {
	found := take(r.root, "status") != nil
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		found = take(r.root, "metadata", field) != nil || found
	}
	for _, annotation := range []string{karpv1.AnnotationNodePoolHash, karpv1.AnnotationNodePoolHashVersion,
		awsv1.AnnotationNodeClassHash, awsv1.AnnotationNodeClassHashVersion, karpv1.Group + "/stored-version-migrated"} {
		found = take(r.root, "metadata", "annotations", annotation) != nil || found
	}
	switch found = r.lastApplied() || found; {
	case found && r.live: // of the cluster, not of a manifest
		r.bared = true
	case found:
		r.anew = true
		r.note(Changed, "metadata", "fields that the API server adds are omitted")
	}
}

// bare removes, before any other change, the fields that the API server and controllers add to objects of other
// kinds, and the number of replicas, which an autoscaler may control.
func (r *repair) bare(kind string) {
	before := Entry{}
	cleaned := repair{document: r.document, Entry: &before}
	cleaned.serverFields()
	for _, annotation := range []string{"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"} {
		take(r.root, "metadata", "annotations", annotation)
	}
	prune(r.root, "metadata", "annotations")
	if slices.Contains(selectorless, kind) {
		take(r.root, "spec", "replicas")
	}
	r.text, r.anew, r.bared, r.ends = encode(r.root, false), false, false, nil
	if again := (&document{text: r.text}); again.parse() == nil { // with the current positions of lines
		r.root = again.root
	}
}

// lastApplied removes the annotations that kubectl and older controllers add, and reports whether one was present.
func (r *repair) lastApplied() bool {
	found := false
	for _, annotation := range []string{"kubectl.kubernetes.io/last-applied-configuration", karpv1.Group + "/provisioner-hash",
		awsv1.Group + "/nodetemplate-hash"} {
		found = take(r.root, "metadata", "annotations", annotation) != nil || found
	}
	for _, field := range []string{"labels", "annotations"} {
		r.stringValues(at(r.root, "metadata", field), "metadata."+field)
	}
	prune(r.root, "metadata", "annotations")
	return found
}

// legacySettings returns the settings as input for the translation.
func (m *migration) legacySettings() v1alpha5.Settings {
	s := v1alpha5.Settings{
		Kwok: m.options.Kwok, ClusterName: m.settings.clusterName, KubernetesMinor: m.options.KubernetesMinor,
		DefaultInstanceProfile: m.settings.defaultInstanceProfile, Tags: m.settings.tags, Drift: m.settings.drift,
	}
	if m.settings.allPods {
		s.MaxPods = 110
	}
	return s
}

func (m *migration) result() Result {
	result := Result{Values: m.values}
	for _, i := range m.items {
		result.Report = append(result.Report, i.Entry)
		result.Changed = result.Changed || i.changed() || len(i.after) > 0
	}
	for _, i := range m.items {
		i.gone = i.gone || i.live && kinds[i.kind] == "" && !(m.options.Workloads && i.changed())
	}
	result.Manifests = join(m.all)
	return result
}
