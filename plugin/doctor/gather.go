package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// Source is the source of facts. Fill all exported fields except Account and Namespace.
type Source struct {
	// Client reads the cluster. Its scheme contains the kinds of Facts and the node classes.
	Client client.Client
	Config *rest.Config
	Now    func() time.Time
	Installation
	// Account is the service account of the controller, as namespace/name. If it is empty, the permissions of the
	// current user are checked.
	Account string
	// Namespace is the namespace of the pod in which the doctor runs, empty outside of a cluster.
	Namespace string
	// Installed is the namespace of the controller, empty for any.
	Installed string
	// Expected are the definitions of this version.
	Expected []*apiextensionsv1.CustomResourceDefinition
}

// pageSize is the number of objects per list request.
const pageSize = 1000

// Gather returns all facts. They include what could not be read.
func (s *Source) Gather(ctx context.Context) *Facts {
	f := &Facts{NoElection: s.LeaseName == ""}
	s.clock(ctx, f)
	var definitions apiextensionsv1.CustomResourceDefinitionList
	s.list(ctx, f, &definitions, nil)
	f.Installed = definitions.Items
	s.conversions(ctx, f)
	s.controllers(ctx, f)
	var provisioners karpv1alpha5.ProvisionerList
	var templates awsv1alpha1.AWSNodeTemplateList
	var overlays karpv1alpha1.NodeOverlayList
	var buffers autoscalingv1beta1.CapacityBufferList
	var quotas autoscalingv1beta1.CapacityQuotaList
	var pools karpv1.NodePoolList
	var claims karpv1.NodeClaimList
	var nodes corev1.NodeList
	var pods, waiting corev1.PodList
	var budgets policyv1.PodDisruptionBudgetList
	var validating admissionv1.ValidatingWebhookConfigurationList
	var mutating admissionv1.MutatingWebhookConfigurationList
	var services corev1.ServiceList
	var slices discoveryv1.EndpointSliceList
	for _, list := range []client.ObjectList{&provisioners, &templates, &overlays, &buffers, &quotas, &pools, &claims, &nodes, &budgets,
		&validating, &mutating, &services, &slices} {
		s.list(ctx, f, list, nil)
	}
	s.list(ctx, f, &pods, client.MatchingFields{"status.phase": string(corev1.PodRunning)})
	s.list(ctx, f, &waiting, client.MatchingFields{"status.phase": string(corev1.PodPending)})
	f.Waiting = waiting.Items
	f.Provisioners, f.Templates = provisioners.Items, templates.Items
	f.Overlays, f.Buffers, f.Quotas = overlays.Items, buffers.Items, quotas.Items
	f.Pools, f.Claims, f.Nodes, f.Pods, f.PDBs = pools.Items, claims.Items, nodes.Items, pods.Items, budgets.Items
	f.Validating, f.Mutating, f.Services, f.Slices = validating.Items, mutating.Items, services.Items, slices.Items
	f.Providers = s.providers(f)
	s.classes(ctx, f)
	f.Expected = s.expected(f)
	s.leases(ctx, f)
	if object, _ := f.ofUpstream(); object == "" && s.accountExists(ctx, f) {
		s.review(ctx, f, s.installations(f))
	}
	return f
}

// providers returns the configured provider, or else those of the running controllers, or else those of the pools'
// node classes.
func (s *Source) providers(f *Facts) []string {
	if s.Provider != "" {
		return []string{s.Provider}
	}
	var list []string
	add := func(provider string) {
		if provider != "" && !slices.Contains(list, provider) {
			list = append(list, provider)
		}
	}
	for i := range f.Controllers {
		add(f.Controllers[i].Provider())
	}
	if len(list) == 0 {
		for i := range f.Pools {
			add(ProviderOf(f.Pools[i].Spec.Template.Spec.NodeClassRef.Group))
		}
	}
	if len(list) == 0 {
		f.Notes = append(f.Notes, "the cloud provider of the controller is unknown, so node classes and the permissions of the provider are not examined; set --cloud-provider")
	}
	slices.Sort(list)
	return list
}

// classesOf returns empty objects of a provider's kinds of node class.
func classesOf(provider string) []client.Object {
	switch provider {
	case "aws":
		return []client.Object{&awsv1.EC2NodeClass{}}
	case "kwok":
		return []client.Object{&kwokv1alpha1.KWOKNodeClass{}}
	}
	return nil
}

// expected returns the definitions that this provider needs: the common ones, and those of its classes. CapacityBuffer
// belongs to SIG Autoscaling: another autoscaler may have installed another version of it.
func (s *Source) expected(f *Facts) []*apiextensionsv1.CustomResourceDefinition {
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, definition := range s.Expected {
		needed := definition.Spec.Group == karpv1.Group
		for _, kind := range f.Owned {
			needed = needed || definition.Spec.Group == kind.Group && definition.Spec.Names.Kind == kind.Kind
		}
		if needed {
			list = append(list, definition)
		}
	}
	return list
}

// kindsUnread begins the name of a kind of objects that were not read.
const kindsUnread = "objects of kind "

// list reads all objects of a kind, page by page.
func (s *Source) list(ctx context.Context, f *Facts, list client.ObjectList, option client.ListOption) {
	what := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", list), "*"), "List")
	if at := strings.LastIndexByte(what, '.'); at >= 0 {
		what = what[at+1:]
	}
	options := []client.ListOption{client.Limit(pageSize)}
	if option != nil {
		options = append(options, option)
	}
	var all []runtime.Object
	for {
		if err := s.Client.List(ctx, list, append(options, client.Continue(list.GetContinue()))...); err != nil {
			if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) { // otherwise the definition is missing, which is a separate finding
				f.Unread = append(f.Unread, Unread{kindsUnread + what, err})
			}
			break
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			f.Unread = append(f.Unread, Unread{kindsUnread + what, err})
			break
		}
		all = append(all, items...)
		if list.GetContinue() == "" {
			break
		}
	}
	if err := meta.SetList(list, all); err != nil {
		f.Unread = append(f.Unread, Unread{kindsUnread + what, err})
	}
}

// classes reads the objects of all kinds of node class that the provider owns.
func (s *Source) classes(ctx context.Context, f *Facts) {
	var kinds []client.Object
	for _, provider := range f.Providers {
		kinds = append(kinds, classesOf(provider)...)
	}
	for _, object := range kinds {
		gvk, err := apiutil.GVKForObject(object, s.Client.Scheme())
		if err != nil {
			f.Unread = append(f.Unread, Unread{fmt.Sprintf("node classes %T", object), err})
			continue
		}
		f.Owned = append(f.Owned, gvk.GroupKind())
		kind := gvk.GroupKind()
		gvk.Kind += "List"
		made, err := s.Client.Scheme().New(gvk)
		list, ok := made.(client.ObjectList)
		if err != nil || !ok {
			f.Unread = append(f.Unread, Unread{"node classes of kind " + kind.Kind, err})
			continue
		}
		s.list(ctx, f, list, nil)
		_ = meta.EachListItem(list, func(item runtime.Object) error { // the function returns no error
			object := item.(client.Object)
			class := Class{Kind: kind, Name: object.GetName(), Deleting: object.GetDeletionTimestamp(), MadeFrom: madeFrom(object)}
			if conditioned, ok := item.(interface{ GetConditions() []status.Condition }); ok {
				class.Conditions = conditionsOf(conditioned.GetConditions())
			}
			f.Classes = append(f.Classes, class)
			return nil
		})
	}
}

func conditionsOf(list []status.Condition) []Condition {
	var conditions []Condition
	for _, c := range list {
		conditions = append(conditions, Condition{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime.Time})
	}
	return conditions
}

// leases reads the Leases of the election, in all namespaces if none is configured.
func (s *Source) leases(ctx context.Context, f *Facts) {
	if s.LeaseName == "" {
		return
	}
	names := []string{s.LeaseName}
	for i := range f.Controllers {
		if name := f.Controllers[i].Settings["LEADER_ELECTION_NAME"]; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		var leases coordinationv1.LeaseList
		options := []client.ListOption{client.MatchingFields{"metadata.name": name}}
		if s.LeaseNamespace != "" {
			options = append(options, client.InNamespace(s.LeaseNamespace))
		}
		if err := s.Client.List(ctx, &leases, options...); err != nil {
			f.Unread = append(f.Unread, Unread{"the Lease " + name, err})
			return
		}
		f.Leases = append(f.Leases, leases.Items...)
	}
}

// installations returns the installations whose permissions are checked: those of the controllers that run as the
// account, or of all controllers if no account is configured. Without controllers it is the configured one, in the
// namespace of the controller's own objects, which is that of its election, or of its account, or of this pod.
func (s *Source) installations(f *Facts) []Installation {
	unconverted := slices.ContainsFunc(f.Installed, isSwitchedOff)
	var list []Installation
	for i := range f.Controllers {
		c := &f.Controllers[i]
		if s.Provider != "" && c.Provider() != s.Provider || s.Account != "" && s.Account != c.Namespace+"/"+c.Account {
			continue
		}
		installed := c.installation(s.LeaseName)
		installed.LeaseNamespace = cmp.Or(s.LeaseNamespace, installed.LeaseNamespace)
		installed.Unconverted = installed.Unconverted || unconverted
		if s.LeaseName == "" {
			installed.LeaseName = ""
		}
		list = append(list, installed)
	}
	if len(list) > 0 {
		return list
	}
	i := s.Installation
	if held := f.tenures(); i.LeaseNamespace == "" && (len(held) == 1 || len(held) > 1 && held[0].alive() && !held[1].alive()) {
		i.LeaseNamespace = held[0].lease.Namespace
	}
	account, _, _ := strings.Cut(s.Account, "/")
	i.LeaseNamespace = cmp.Or(i.LeaseNamespace, account, s.Namespace)
	i.Unconverted = i.Unconverted || unconverted
	if i.Provider != "" || len(f.Providers) == 0 {
		return []Installation{i}
	}
	for _, i.Provider = range f.Providers {
		list = append(list, i)
	}
	return list
}

// isSwitchedOff reports whether a definition names the service that marks a disabled webhook.
func isSwitchedOff(d apiextensionsv1.CustomResourceDefinition) bool {
	c := d.Spec.Conversion
	return c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil &&
		c.Webhook.ClientConfig.Service.Name == SwitchedOff
}

// itsPermissions names what cannot be read if the namespace is unknown.
const itsPermissions = "permissions in the controller's namespace"

// errNowhere is why permissions in the controller's own namespace are not checked.
var errNowhere = errors.New("the namespace is unknown")

// clock queries the API server's version and its time, which is in the header of every response, in whole seconds.
func (s *Source) clock(ctx context.Context, f *Facts) {
	fail := func(err error) {
		f.Now = s.Now()
		f.Unread = append(f.Unread, Unread{"the clock of the API server", err})
	}
	web, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		fail(err)
		return
	}
	host, _, err := rest.DefaultServerUrlFor(s.Config)
	if err != nil {
		fail(err)
		return
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host.JoinPath("version").String(), nil)
	if err != nil {
		fail(err)
		return
	}
	response, err := web.Do(request)
	if err != nil {
		fail(err)
		return
	}
	defer response.Body.Close()
	f.Now = s.Now()
	if f.ServerTime, err = http.ParseTime(response.Header.Get("Date")); err != nil {
		fail(err)
	}
	f.Kubernetes = versionIn(response.Body)
}

// longestVersion bounds the number of bytes of the response to /version that are read. About 500 are usual.
const longestVersion = 64 << 10

// versionIn returns the version in a response to /version, such as v1.36.3, or "" if there is none.
func versionIn(answer io.Reader) string {
	var info version.Info
	if json.NewDecoder(io.LimitReader(answer, longestVersion)).Decode(&info) != nil {
		return ""
	}
	return info.GitVersion
}

// review checks the permissions of the controller. A role that grants a right in one namespace does not grant it
// everywhere: if the namespace is unknown, nothing is checked.
func (s *Source) review(ctx context.Context, f *Facts, installations []Installation) {
	nowhere := false
	var rights []Right
	for _, i := range installations {
		for _, right := range Rights(i) {
			if !slices.ContainsFunc(rights, func(r Right) bool { return sameRight(r, right) && slices.Equal(r.Verbs, right.Verbs) }) {
				rights = append(rights, right)
			}
		}
	}
	for _, right := range rights {
		if right.Own && right.Namespace == "" {
			if !nowhere {
				f.Unread = append(f.Unread, Unread{itsPermissions, errNowhere})
			}
			nowhere = true
			continue
		}
		for _, verb := range right.Verbs {
			status, err := s.ask(ctx, right, verb)
			if err != nil {
				f.Unread = append(f.Unread, Unread{"the controller's permissions", err})
				return
			}
			f.Reviewed++
			if !status.Allowed {
				f.Denied = append(f.Denied, Denied{right, verb, strings.Join(strings.Fields(status.Reason+" "+status.EvaluationError), " ")})
			}
		}
	}
	if len(f.Denied) > 0 && s.byOther(ctx, f) {
		f.Denied, f.Reviewed = nil, 0
		f.Unread = slices.DeleteFunc(f.Unread, func(u Unread) bool { return u.What == itsPermissions })
		account := "NAMESPACE/NAME"
		if len(f.Controllers) > 0 {
			account = f.Controllers[0].Namespace + "/" + f.Controllers[0].Account
		}
		f.Notes = append(f.Notes, "the permissions of the controller are not examined, because the current user is not the controller, and has fewer; "+
			"set --service-account="+account+", which requires the permission to create subjectaccessreviews")
	}
}

// accountExists reports whether the service account of the controller may exist.
func (s *Source) accountExists(ctx context.Context, f *Facts) bool {
	namespace, name, given := strings.Cut(s.Account, "/")
	if given && apierrors.IsNotFound(s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ServiceAccount{})) {
		f.NoAccount = s.Account
		return false
	}
	return true
}

// byOther reports whether the current user is known to be another one than the controllers that were found. If none
// was found, users other than service accounts are.
func (s *Source) byOther(ctx context.Context, f *Facts) bool {
	if s.Account != "" {
		return false
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := s.Client.Create(ctx, review); err != nil {
		return false
	}
	if len(f.Controllers) == 0 {
		return review.Status.UserInfo.Username != "" && !strings.HasPrefix(review.Status.UserInfo.Username, "system:serviceaccount:")
	}
	return !slices.ContainsFunc(f.Controllers, func(c Controller) bool {
		return review.Status.UserInfo.Username == "system:serviceaccount:"+c.Namespace+":"+c.Account
	})
}

func (s *Source) ask(ctx context.Context, right Right, verb string) (*authorizationv1.SubjectAccessReviewStatus, error) {
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	about := &authorizationv1.ResourceAttributes{
		Group: right.Group, Resource: resource, Subresource: subresource, Verb: verb, Namespace: right.Namespace, Name: right.Name,
	}
	if s.Account == "" {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: about}}
		err := s.Client.Create(ctx, review)
		return &review.Status, err
	}
	namespace, name, _ := strings.Cut(s.Account, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: about, User: "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}}
	err := s.Client.Create(ctx, review)
	return &review.Status, err
}
