package legacy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// Settings are what older versions took from the controller's own settings (environment, the ConfigMap
// karpenter-global-settings), and what is known of the cluster. The zero value is that of files of which nothing else is
// known, for AWS.
type Settings struct {
	// Kwok says that machines are simulated: node classes are KWOKNodeClasses, and what objects say about AWS has no meaning.
	Kwok bool
	// ClusterName is the name of the EKS cluster (aws.clusterName); without it objects are asked, which have it in
	// v1alpha3 and v1alpha4.
	ClusterName string
	// KubernetesMinor is the minor version of the cluster, such as 34; 0 if it is not known.
	KubernetesMinor int
	// DefaultInstanceProfile is that of objects that name none (aws.defaultInstanceProfile). Without it, a class that
	// needs it cannot be made.
	DefaultInstanceProfile string
	// Tags are those of everything that was made in AWS (aws.tags).
	Tags map[string]string
	// MaxPods is the number of pods of nodes that no kubelet settings limit, where it does not follow from network
	// interfaces: 110 if aws.enableENILimitedPodDensity was false. 0 otherwise.
	MaxPods int32
	// Separate are the Provisioners that have a class of their own beside that of their template, and keep it as long as
	// their kubelet settings differ from those of the template's class: when another Provisioner goes, nothing changes for
	// them. Empty for objects of which nothing has been made yet.
	Separate map[string]bool
	// Using are the names of the classes with which machines are made now, by Provisioner: of Provisioners of the same age
	// the one that has the template's class keeps it. Empty for objects of which nothing has been made yet.
	Using map[string]string
	// Drift says that nodes which differ from their Provisioner were replaced (featureGates.driftEnabled, false by default).
	Drift bool
}

// Result is what one object became.
type Result struct {
	// Kind and Name are those of the object, Version is the one that it was written in.
	Kind, Name, Version string
	// Pool is the NodePool of a Provisioner, of the same name; nil for an AWSNodeTemplate. It is complete, labels and
	// annotations of its metadata excepted.
	Pool *karpv1.NodePool
	// Classes are the EC2NodeClasses that belong to the object: for an AWSNodeTemplate one of its name; for a Provisioner one
	// if it has a cloud part of its own, or kubelet settings that the template's class does not have. None if one cannot be
	// made: an Impossible note says why, and the pool still names it, so that one can be written by hand.
	Classes []*awsv1.EC2NodeClass
	// Simulated is the class of a Provisioner where machines are simulated.
	Simulated *kwokv1alpha1.KWOKNodeClass
	// Unused says of an AWSNodeTemplate that no Provisioner uses the class of its name, so that nothing says what its kubelet
	// settings should be: those that it has may stay.
	Unused bool
	// Notes are all that is said differently, sorted by field. What is not mentioned is said as it was.
	Notes []Note
}

// Translate says in today's API what the objects meant, one result per object and in their order. Objects for which
// Translates is false have no result. The objects are not changed, and results share nothing with them.
func Translate(objects []*unstructured.Unstructured, settings Settings) []Result {
	w := world{settings: settings, templates: map[string]*template{}}
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

// world is everything that is translated together.
type world struct {
	settings     Settings
	templates    map[string]*template
	provisioners []*provisioner
}

// connect gives every Provisioner its class. The oldest Provisioner that uses a template decides about the kubelet
// settings of the class of the template's name, so that a new Provisioner changes nothing for those that are there;
// one with others gets a class of its own, and keeps it.
func (w *world) connect() {
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

// has says whether a Provisioner has the class of its template's name already.
func (w *world) has(p *provisioner) bool {
	return p.templateName != "" && w.settings.Using[p.name] == p.templateName
}

const inlineSuffix = "provider"

// InlineClass is the name of the class of a Provisioner with an inline provider, if an AWSNodeTemplate has the Provisioner's.
func InlineClass(provisioner string) string { return provisioner + "-" + inlineSuffix }

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// free is the first name that is not taken, and takes it: the wished one, or with more behind it.
func free(taken map[string]bool, wish, more string) string {
	for taken[wish] {
		wish += "-" + more
	}
	taken[wish] = true
	return wish
}

// use gives a Provisioner the class of its template, or one of its own if their kubelet settings differ.
func (w *world) use(p *provisioner, taken map[string]bool) {
	t := w.templates[p.templateName]
	switch {
	case t == nil:
		p.refer(p.templateName)
		p.notes.add(Changed, p.refPath, "spec.template.spec.nodeClassRef", "there is no %s %q here: an EC2NodeClass of this name is used", KindAWSNodeTemplate, p.templateName)
		if p.kubelet != nil {
			p.notes.add(Impossible, "spec.kubeletConfiguration", "", "belongs to the node class, which is not made here: set spec.kubelet of EC2NodeClass %q", p.templateName)
		}
		return
	case !t.claimed && !w.settings.Separate[p.name], t.claimed && sameKubelet(t.kubelet, p.kubelet):
		p.share(t)
	default:
		p.own(free(taken, t.name+"-"+p.name, "kubelet"), t.cloud)
		p.notes.add(Changed, p.refPath, "spec.template.spec.nodeClassRef", "kubelet settings are the class's today, and class %s has, or had, those of another Provisioner: this one has a class of its own", t.name)
	}
	p.restrict(t.restrictions, t.name)
}

// share gives a Provisioner the class of its template's name, and the first that does so decides about its kubelet settings.
func (p *provisioner) share(t *template) {
	p.refer(t.name)
	if !t.claimed && p.kubelet != nil {
		t.notes.add(Changed, "spec", "EC2NodeClass "+t.name+" spec.kubelet", "has the kubelet settings of Provisioner %s, which uses it", p.name)
	}
	t.claimed, t.kubelet = true, p.kubelet
	switch {
	case t.cloud.broken:
		p.notes.add(Impossible, p.refPath, "", "%s %q cannot become a class, for the reasons that it tells: write EC2NodeClass %q by hand", KindAWSNodeTemplate, t.name, t.name)
	case p.kubelet != nil:
		p.notes.add(Carried, "spec.kubeletConfiguration", "EC2NodeClass "+t.name+" spec.kubelet", "kubelet settings are the class's")
	}
}

// created is the time by which objects are told apart in age; files have none.
func created(object *unstructured.Unstructured) time.Time { return object.GetCreationTimestamp().Time }
