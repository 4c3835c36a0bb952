package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// Codes of what Examine finds; docs/doctor.md lists them, and a test compares.
const (
	CannotLook            = "CannotLook"            // something could not be asked, for the time being
	CloudUnreachable      = "CloudUnreachable"      // AWS does not answer, or does not know who asks
	CloudPermissionDenied = "CloudPermissionDenied" // AWS does not allow something that the controller has to do
	CloudClockSkew        = "CloudClockSkew"        // the clocks differ
	ClusterUnknown        = "ClusterUnknown"        // EKS has no cluster of the name
	ClusterDiffers        = "ClusterDiffers"        // EKS speaks of another cluster than this one
	VersionUntried        = "VersionUntried"        // of Kubernetes, outside of what is tried
	QueueMissing          = "QueueMissing"          // there is no queue of interruptions of the name
	SubnetsMissing        = "SubnetsMissing"        // no subnet is selected by a class
	SubnetsFull           = "SubnetsFull"           // no subnet of a class has an address left
	SecurityGroupsMissing = "SecurityGroupsMissing" // no security group is selected by a class
	ImagesMissing         = "ImagesMissing"         // no image is selected by a class
	ProfileMissing        = "ProfileMissing"        // the instance profile of a class is not there
	ProfileWithoutRole    = "ProfileWithoutRole"    // it has not the role that the class wants
	SpotRoleMissing       = "SpotRoleMissing"       // the service-linked role of EC2 Spot
	LaunchRefused         = "LaunchRefused"         // EC2 would not launch what a class describes
	TagsMissing           = "TagsMissing"           // an instance of ours has lost the tags by which it is found
)

// mostSkew is how far the clock may be from AWS's: from five minutes on AWS refuses what we sign.
const mostSkew = time.Minute

var _ cloud.Examiner = (*Provider)(nil)

// examination is one look at AWS. What is found is kept with its code and object, each pair once.
type examination struct {
	*Provider
	findings map[[2]string]cloud.Finding

	classes []awsv1.EC2NodeClass
	pools   []karpv1.NodePool
	claims  []karpv1.NodeClaim
	facts   discovery.Facts
}

// Examine implements cloud.Examiner. It reads, tries dry runs, and receives a message of the queue, which
// nobody else sees for a second; nothing is changed.
func (p *Provider) Examine(ctx context.Context) []cloud.Finding {
	e := &examination{Provider: p, findings: map[[2]string]cloud.Finding{}}
	if e.reach(ctx) {
		e.read(ctx)
		for _, look := range []func(context.Context){
			e.cluster, e.permissions, e.queue, e.eachClass, e.spotRole, e.machines,
		} {
			look(ctx)
		}
	}
	found := slices.Collect(maps.Values(e.findings))
	slices.SortFunc(found, func(a, b cloud.Finding) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(a.Object, b.Object))
	})
	return found
}

// found notes something that is wrong; the first of a code about an object counts.
func (e *examination) found(code, object, fix, problem string, arguments ...any) {
	at := [2]string{code, object}
	if _, known := e.findings[at]; known {
		return
	}
	text := strings.Join(strings.Fields(fmt.Sprintf(problem, arguments...)), " ")
	e.findings[at] = cloud.Finding{Code: code, Object: object, Problem: text, Fix: fix}
}

const roleFix = "allow it in the IAM policy of the controller's role; docs/aws-iam-policy.json has the whole policy"

// asked notes why an answer did not come, and reports whether it did. The permission is as IAM spells it.
func (e *examination) asked(err error, permission string) bool {
	var failed *call.Error
	var absent *NoRegionError
	switch {
	case err == nil:
		return true
	case errors.As(regionOf(e.opts.Region, err), &absent):
		e.found(CloudUnreachable, "aws", "set AWS_REGION to the region of the cluster", "%s", absent)
	case errors.As(err, &failed) && failed.Forbidden():
		e.found(CloudPermissionDenied, permission, roleFix, "the controller may not do %s: %s", permission, failed)
	default:
		e.found(CannotLook, permission, "look again; if it stays, look at the network between the controller and AWS, and at the health of the service", "AWS did not answer %s: %s", permission, err)
	}
	return false
}

// do makes a call of a service, with the time limit of all of the provider's.
func do(ctx context.Context, e *examination, permission string, send func(context.Context) error) error {
	service, operation, _ := strings.Cut(permission, ":")
	_, err := call.Do(ctx, e.sources.Calls, strings.ToUpper(service), operation, func(ctx context.Context) (struct{}, error) { return struct{}{}, send(ctx) })
	var answer *call.Error
	if errors.As(err, &answer) && answer.Code == "DryRunOperation" {
		return nil
	}
	return err
}

// reach asks whether AWS answers, and knows who asks; and what time it is there.
func (e *examination) reach(ctx context.Context) bool {
	var date time.Time
	err := do(ctx, e, "ec2:DescribeInstanceTypes", func(ctx context.Context) error {
		_, err := e.opts.Clients.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
		date = dateOf(err)
		return err
	})
	if skew := e.opts.Clock.Now().Sub(date); !date.IsZero() && skew.Abs() > mostSkew {
		e.found(CloudClockSkew, "clock", "synchronise the clock of this machine (chrony, NTP): AWS refuses requests that were signed more than five minutes ago",
			"the clock here and that of AWS differ by %s", skew.Round(time.Second))
	}
	var failed *call.Error
	var absent *NoRegionError
	switch {
	case err == nil:
		return true
	case errors.As(regionOf(e.opts.Region, err), &absent):
		e.found(CloudUnreachable, "aws", "set AWS_REGION to the region of the cluster", "%s", absent)
	case errors.As(err, &failed) && failed.Kind == call.Denied && !failed.Forbidden():
		e.found(CloudUnreachable, "aws", "look at the controller's credentials: Pod Identity or the role annotation of its service account, and the trust policy of the role",
			"AWS does not accept the credentials: %s", failed)
	case failed != nil && failed.Code != "":
		return true // somebody is there; what it may not do is found below
	default:
		e.found(CloudUnreachable, "aws", "look at the network, at the region (AWS_REGION), at the endpoint (AWS_ENDPOINT_URL), and for credentials (AWS_PROFILE, Pod Identity, instance metadata)",
			"AWS does not answer: %s", err)
	}
	return false
}

// dateOf is the time that AWS's answer says; zero if there was no answer, or none that is an error.
func dateOf(err error) time.Time {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil {
		return time.Time{}
	}
	date, err := http.ParseTime(answer.Response.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date
}

// read lists what AWS is asked about.
func (e *examination) read(ctx context.Context) {
	var classes awsv1.EC2NodeClassList
	var pools karpv1.NodePoolList
	var claims karpv1.NodeClaimList
	for _, list := range []client.ObjectList{&classes, &pools, &claims} {
		if err := e.opts.Live.List(ctx, list); err != nil {
			e.found(CannotLook, fmt.Sprintf("%T", list), "run the doctor as somebody who may list them", "cannot be listed: %s", err)
		}
	}
	e.classes, e.pools = classes.Items, pools.Items
	e.claims = slices.DeleteFunc(claims.Items, func(c karpv1.NodeClaim) bool { return c.Spec.NodeClassRef.Group != awsv1.Group })
}
