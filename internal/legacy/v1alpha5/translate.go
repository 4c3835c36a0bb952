package v1alpha5

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// Settings contains what older versions read from the controller's own settings (environment, the ConfigMap
// karpenter-global-settings), and facts about the cluster. The zero value is for AWS and files without further
// information.
type Settings struct {
	// Kwok means that machines are simulated: node classes are KWOKNodeClasses, and AWS settings of objects have no
	// meaning.
	Kwok bool
	// ClusterName is the name of the EKS cluster (aws.clusterName). Without it, the name in objects of v1alpha3 and
	// v1alpha4 is used.
	ClusterName string
	// KubernetesMinor is the minor version of the cluster, such as 34, or 0 if unknown.
	KubernetesMinor int
	// DefaultInstanceProfile is the profile for objects without one (aws.defaultInstanceProfile). Without it, a class
	// that needs it cannot be created.
	DefaultInstanceProfile string
	// Tags are those of all AWS resources that were created (aws.tags).
	Tags map[string]string
	// MaxPods is the number of pods on nodes without a limit in their kubelet settings, if it does not depend on
	// network interfaces: 110 if aws.enableENILimitedPodDensity was false, otherwise 0.
	MaxPods int32
	// Separate contains the Provisioners that have their own class next to that of their template. They keep it while
	// their kubelet settings differ from those of the template's class: the deletion of another Provisioner changes
	// nothing for them. It is empty for objects that have not been translated before.
	Separate map[string]bool
	// Using contains the names of the classes with which machines are launched now, by Provisioner: of Provisioners
	// of the same age, the one that has the template's class keeps it. It is empty for objects that have not been
	// translated before.
	Using map[string]string
	// Drift means that nodes that differ from their Provisioner were replaced (featureGates.driftEnabled, false by
	// default).
	Drift bool
}

// Result is the translation of one object.
type Result struct {
	// Kind and Name are those of the object. Version is the one in which it was written.
	Kind, Name, Version string
	// Pool is the NodePool of a Provisioner, with the same name, or nil for an AWSNodeTemplate. It is complete except
	// for labels and annotations of its metadata.
	Pool *karpv1.NodePool
	// Classes are the EC2NodeClasses of the object. An AWSNodeTemplate has one with its name. A Provisioner has one
	// if it has its own cloud part, or kubelet settings that the template's class does not have. It is empty if the
	// class cannot be created: an Impossible note contains the reason, and the pool still references it, so that
	// users can write one.
	Classes []*awsv1.EC2NodeClass
	// Simulated is the class of a Provisioner with simulated machines.
	Simulated *kwokv1alpha1.KWOKNodeClass
	// Unused means, for an AWSNodeTemplate, that no Provisioner uses the class with its name, so that its kubelet
	// settings are not determined and may be kept.
	Unused bool
	// Notes lists all differences, sorted by field. Fields without a note are unchanged.
	Notes []Note
}

// Translate translates the objects to the current API, one result per object and in their order. Objects for which
// Translates is false have no result. Translate does not modify the objects, and results share no data with them.
func Translate(objects []*unstructured.Unstructured, settings Settings) []Result {
	w := inputSet{settings: settings, templates: map[string]*template{}}
	var order []func() Result
	for _, object := range objects {
		if !Translates(object) {
			continue
		}
		switch object.GetKind() {
		case KindAWSNodeTemplate:
			t := w.readTemplate(object)
			w.templates[t.name] = t
			order = append(order, t.result)
		case KindProvisioner:
			p := w.readProvisioner(object)
			w.provisioners = append(w.provisioners, p)
			order = append(order, p.result)
		}
	}
	w.connect()
	results := make([]Result, 0, len(order))
	for _, result := range order {
		results = append(results, result())
	}
	return results
}

// inputSet is the set of objects that are translated together.
type inputSet struct {
	settings     Settings
	templates    map[string]*template
	provisioners []*provisioner
}

// connect assigns a class to every Provisioner. The oldest Provisioner that uses a template determines the kubelet
// settings of the class with the template's name, so that a new Provisioner changes nothing for existing ones. A
// Provisioner with other settings gets its own class, and keeps it.
func (w *inputSet) connect() {
	byAge := slices.Clone(w.provisioners)
	slices.SortStableFunc(byAge, func(a, b *provisioner) int {
		return cmp.Or(order(w.settings.Separate[a.name], w.settings.Separate[b.name]), a.created.Compare(b.created),
			order(w.has(b), w.has(a)), cmp.Compare(a.name, b.name))
	})
	taken := map[string]bool{}
	for name := range w.templates {
		taken[name] = true
	}
	for _, p := range byAge {
		switch {
		case w.settings.Kwok:
			p.simulate()
		case p.foreign != nil:
			p.pool.Spec.Template.Spec.NodeClassRef = *p.foreign
		case p.templateName == "":
			p.own(free(taken, p.name, inlineSuffix), p.inline)
		default:
			w.use(p, taken)
		}
	}
}

// has reports whether a Provisioner already has the class with its template's name.
func (w *inputSet) has(p *provisioner) bool {
	return p.templateName != "" && w.settings.Using[p.name] == p.templateName
}

const inlineSuffix = "provider"

// InlineClass returns the name of the class of a Provisioner with an inline provider, if an AWSNodeTemplate has the
// same name.
func InlineClass(provisioner string) string { return provisioner + "-" + inlineSuffix }

// order returns a comparison that orders false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// free reserves and returns the first name that is not taken: the preferred one, or one with suffixes.
func free(taken map[string]bool, preferred, more string) string {
	for taken[preferred] {
		preferred += "-" + more
	}
	taken[preferred] = true
	return preferred
}

// use assigns the class of its template to a Provisioner, or its own class if their kubelet settings differ.
func (w *inputSet) use(p *provisioner, taken map[string]bool) {
	t := w.templates[p.templateName]
	switch {
	case t == nil:
		p.refer(p.templateName)
		p.notes.add(Changed, p.refPath, "spec.template.spec.nodeClassRef", "the %s %q does not exist; an EC2NodeClass with this name is used", KindAWSNodeTemplate, p.templateName)
		if p.kubelet != nil {
			p.notes.add(Impossible, "spec.kubeletConfiguration", "",
				"belongs to the node class, which is not created; set spec.kubelet of EC2NodeClass %q", p.templateName)
		}
		return
	case !t.claimed && !w.settings.Separate[p.name], t.claimed && sameKubelet(t.kubelet, p.kubelet):
		p.share(t)
	default:
		p.own(free(taken, t.name+"-"+p.name, "kubelet"), t.cloud)
		p.notes.add(Changed, p.refPath, "spec.template.spec.nodeClassRef",
			"kubelet settings belong to the node class, and the class %s has, or had, those of another Provisioner; this Provisioner gets its own class", t.name)
	}
	p.restrict(t.restrictions, t.name)
}

// share assigns the class with its template's name to a Provisioner. The first Provisioner determines its kubelet
// settings.
func (p *provisioner) share(t *template) {
	p.refer(t.name)
	if !t.claimed && p.kubelet != nil {
		t.notes.add(Changed, "spec", "EC2NodeClass "+t.name+" spec.kubelet", "set to the kubelet settings of Provisioner %s, which uses it", p.name)
	}
	t.claimed, t.kubelet = true, p.kubelet
	switch {
	case t.cloud.broken:
		p.notes.add(Impossible, p.refPath, "", "%s %q cannot be converted to a class, for the reasons in its status; write EC2NodeClass %q manually", KindAWSNodeTemplate, t.name, t.name)
	case p.kubelet != nil:
		p.notes.add(Carried, "spec.kubeletConfiguration", "EC2NodeClass "+t.name+" spec.kubelet",
			"kubelet settings belong to the node class")
	}
}

// created returns the time that determines the age of objects. Objects in files have none.
func created(object *unstructured.Unstructured) time.Time { return object.GetCreationTimestamp().Time }
