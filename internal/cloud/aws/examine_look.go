package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// The individual checks of an examination.

// cluster checks that EKS describes the cluster that the controller runs in.
func (e *examination) cluster(ctx context.Context) {
	const permission = "eks:DescribeCluster"
	object := "cluster/" + e.opts.Cluster
	version := ""
	err := do(ctx, e, permission, func(ctx context.Context) error {
		out, err := e.opts.Clients.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &e.opts.Cluster})
		if err == nil && out.Cluster != nil {
			version = aws.ToString(out.Cluster.Version)
		}
		return err
	})
	reported := err != nil // a finding about the cluster is recorded below
	if known := call.KindOf(err) != call.NotFound; !known && e.opts.Kubernetes.Endpoint == "" {
		e.found(ClusterUnknown, object, "set --cluster-name (settings.clusterName) to a name that `aws eks list-clusters` lists; for a cluster outside of EKS, also set --cluster-endpoint",
			"EKS has no cluster %q in %s", e.opts.Cluster, e.opts.Region)
	} else if known {
		e.asked(err, permission)
	}
	e.facts, err = e.sources.Cluster.Facts(ctx)
	var same *call.Error // the facts make only this call
	if err != nil && !(reported && errors.As(err, &same)) {
		e.found(CannotLook, object, "set --cluster-endpoint and --cluster-ca-bundle, or allow "+permission,
			"the cluster data for nodes is not known: %s", err)
	}
	e.versions(object, version)
}

// versions compares the versions that EKS and the API server report.
func (e *examination) versions(object, ofEKS string) {
	here := e.facts.Version
	if here == "" {
		return
	}
	if ofEKS != "" && !strings.HasPrefix(ofEKS+".", here+".") {
		e.found(ClusterDiffers, object, "set --cluster-name (settings.clusterName) to the name of this cluster, or point the doctor's kubeconfig to that one",
			"EKS reports Kubernetes %[2]s for cluster %[1]s, and this API server has %[3]s", e.opts.Cluster, ofEKS, here)
	}
	if !discovery.Supported(here) {
		e.found(VersionUntried, object, "upgrade the cluster or the controller, so that they are compatible",
			"the cluster has Kubernetes %s; tested versions are %s", here, discovery.SupportedVersions)
	}
}

// spotRole checks for the role without which EC2 launches no spot instance for the account.
func (e *examination) spotRole(ctx context.Context) {
	const permission, name = "iam:GetRole", "AWSServiceRoleForEC2Spot"
	if !featureOf(permission).on(e) {
		return
	}
	err := do(ctx, e, permission, func(ctx context.Context) error {
		_, err := e.opts.Clients.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(name)})
		return err
	})
	if call.KindOf(err) == call.NotFound {
		e.found(SpotRoleMissing, "role/"+name, "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
			"the account has no role %s: EC2 launches no spot instances for it, which pools may use", name)
		return
	}
	e.asked(err, permission)
}

// allowsSpot reports whether a pool with an EC2NodeClass allows spot instances.
func allowsSpot(pool karpv1.NodePool) bool {
	if pool.Spec.Template.Spec.NodeClassRef.Group != awsv1.Group {
		return false
	}
	values := cloud.AnyValue()
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if r.Key == karpv1.LabelCapacityType {
			values = values.Narrow(string(r.Operator), r.Values)
		}
	}
	return values.Has(karpv1.CapacityTypeSpot)
}

// queue checks that the interruption queue exists and that messages can be received and deleted.
func (e *examination) queue(ctx context.Context) {
	if !featureOf("sqs:ReceiveMessage").on(e) {
		return
	}
	var url *string
	err := do(ctx, e, "sqs:GetQueueUrl", func(ctx context.Context) error {
		out, err := e.opts.Clients.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &e.opts.Queue})
		if err == nil {
			url = out.QueueUrl
		}
		return err
	})
	var failed *call.Error
	if errors.As(err, &failed) && (failed.Kind == call.NotFound || strings.Contains(failed.Code,
		"NonExistentQueue") || failed.Code == "QueueDoesNotExist") {
		e.found(QueueMissing, "queue/"+e.opts.Queue,
			"create the queue and its rules (docs/aws.md), or set --interruption-queue (settings.interruptionQueue) to the existing queue",
			"the queue %q does not exist in this account and region: no interruption notices are received", e.opts.Queue)
		return
	}
	if !e.asked(err, "sqs:GetQueueUrl") {
		return
	}
	e.asked(do(ctx, e, "sqs:ReceiveMessage", func(ctx context.Context) error {
		// One second: the SDK omits a zero, and the queue's own timeout would apply, which is 30 s by default.
		_, err := e.opts.Clients.SQS.ReceiveMessage(ctx,
			&sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 1, VisibilityTimeout: 1, WaitTimeSeconds: 0})
		return err
	}), "sqs:ReceiveMessage")
	err = do(ctx, e, "sqs:DeleteMessage", func(ctx context.Context) error { // for a message that does not exist
		_, err := e.opts.Clients.SQS.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url,
			Entries: []sqstypes.DeleteMessageBatchRequestEntry{{Id: aws.String("doctor"), ReceiptHandle: aws.String("none")}}})
		return err
	})
	if call.KindOf(err) != call.Rejected {
		e.asked(err, "sqs:DeleteMessage")
	}
}

// eachClass checks the resources that the classes select, and makes dry runs of their launches.
func (e *examination) eachClass(ctx context.Context) {
	for i := range e.classes {
		class := &e.classes[i]
		if class.DeletionTimestamp != nil {
			continue
		}
		e.podsPerNode(class)
		if e.network(ctx, class) && e.images(ctx, class) && e.profile(ctx, class) {
			e.launch(ctx, class)
		}
	}
}

// podsPerNode compares the settings of the VPC CNI with those of the class and the controller.
func (e *examination) podsPerNode(of *awsv1.EC2NodeClass) {
	if problem, fix, differ := strings.Cut(class.PodsHint(of, e.facts, e.opts.ReservedENIs), "; "); differ {
		e.found(PodsPerNodeDiffer, "ec2nodeclass/"+of.Name, fix, "%s", problem)
	}
}

func (e *examination) network(ctx context.Context, class *awsv1.EC2NodeClass) bool {
	object := "ec2nodeclass/" + class.Name
	subnets, err := e.sources.Subnets.Find(ctx, class)
	if !e.asked(err, "ec2:DescribeSubnets") {
		return false
	}
	if len(subnets) == 0 {
		e.found(SubnetsMissing, object, "give subnets the tags, or correct spec.subnetSelectorTerms: aws ec2 create-tags --resources SUBNET-ID --tags Key=KEY,Value=VALUE",
			"no subnet of %s has %s", e.opts.Region, subnetWants(class))
	} else if subnets[0].Free == 0 { // the subnet with the most free addresses
		e.found(SubnetsFull, object, "add subnets, or free addresses: no instance can be launched",
			"none of the %d subnets has a free address", len(subnets))
	}
	groups, err := e.sources.Groups.Find(ctx, class)
	if !e.asked(err, "ec2:DescribeSecurityGroups") {
		return false
	}
	used, elsewhere := discovery.OfNetwork(groups, subnets)
	if len(used) == 0 {
		beside := ""
		if len(elsewhere) > 0 {
			beside = fmt.Sprintf(" in the network of the subnets; %d of other networks do", len(elsewhere))
		}
		e.found(SecurityGroupsMissing, object, "give security groups the tags, or correct spec.securityGroupSelectorTerms: aws ec2 create-tags --resources GROUP-ID --tags Key=KEY,Value=VALUE",
			"no security group has %s%s", groupWants(class), beside)
	}
	return len(subnets) > 0 && len(used) > 0
}

// subnetWants describes the attributes that a subnet must have to be selected.
func subnetWants(class *awsv1.EC2NodeClass) string {
	var wants []string
	for _, t := range class.Spec.SubnetSelectorTerms {
		wants = append(wants, wanted(t.ID, "", t.Tags))
	}
	return strings.Join(wants, ", or ")
}

func groupWants(class *awsv1.EC2NodeClass) string {
	var wants []string
	for _, t := range class.Spec.SecurityGroupSelectorTerms {
		wants = append(wants, wanted(t.ID, t.Name, t.Tags))
	}
	return strings.Join(wants, ", or ")
}

// wanted is one term in words.
func wanted(id, name string, tags map[string]string) string {
	switch {
	case id != "":
		return "the id " + id
	case name != "":
		return "the name " + name
	}
	var list []string
	for _, key := range sortedKeys(tags) {
		list = append(list, key+"="+tags[key])
	}
	return "the tags " + strings.Join(list, ", ")
}

func (e *examination) images(ctx context.Context, class *awsv1.EC2NodeClass) bool {
	if e.facts.Version == "" {
		return false // the images are unknown, and the cause is already a finding
	}
	object, fix := "ec2nodeclass/"+class.Name, "correct spec.amiSelectorTerms: an alias such as al2023@latest, or ids, names and tags of images that this account may use"
	images, err := e.sources.Images.Find(ctx, class, e.facts.Version)
	var unsupported *discovery.UnsupportedAliasError
	switch {
	case errors.As(err, &unsupported):
		e.found(ImagesMissing, object, fix, "%s", unsupported)
		return false
	case err != nil && call.KindOf(err) == call.NotFound, err == nil && len(images) == 0:
		e.found(ImagesMissing, object, fix, "no image for Kubernetes %s matches the class", e.facts.Version)
		return false
	}
	permission := "ec2:DescribeImages"
	var failed *call.Error
	if errors.As(err, &failed) && failed.Service == "SSM" {
		permission = "ssm:GetParameter"
	}
	return e.asked(err, permission)
}

// profile checks that instances get the role that the class requires.
func (e *examination) profile(ctx context.Context, class *awsv1.EC2NodeClass) bool {
	name := class.Status.InstanceProfile
	if class.Spec.InstanceProfile != nil {
		name = *class.Spec.InstanceProfile
	}
	if e.opts.IsolatedVPC || name == "" {
		return name != "" // otherwise a condition of the class has the cause
	}
	const permission = "iam:GetInstanceProfile"
	var roles []string
	err := do(ctx, e, permission, func(ctx context.Context) error {
		out, err := e.opts.Clients.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
		if err == nil && out.InstanceProfile != nil {
			for _, role := range out.InstanceProfile.Roles {
				roles = append(roles, aws.ToString(role.RoleName))
			}
		}
		return err
	})
	object := "ec2nodeclass/" + class.Name
	role := class.Spec.Role[strings.LastIndexByte(class.Spec.Role, '/')+1:]
	switch {
	case call.KindOf(err) == call.NotFound:
		e.found(ProfileMissing, object, "create the instance profile, or specify another in spec.instanceProfile; the controller creates the one of spec.role again within 15 minutes",
			"the instance profile %q does not exist: instances cannot be launched with it", name)
	case !e.asked(err, permission):
	case len(roles) == 0, role != "" && !slices.Contains(roles, role):
		e.found(ProfileWithoutRole, object, fmt.Sprintf("aws iam add-role-to-instance-profile --instance-profile-name %s --role-name ROLE", name),
			"the instance profile %q has the roles [%s], and the class wants %s: nodes could not join the cluster", name,
			strings.Join(roles, " "), cmp.Or(role, "one"))
	default:
		return true
	}
	return false
}

// launch makes a dry run of a launch for a class that the controller has resolved.
func (e *examination) launch(ctx context.Context, of *awsv1.EC2NodeClass) {
	if e.opts.NoDryRun || len(of.Status.Subnets) == 0 || len(of.Status.AMIs) == 0 || of.Status.InstanceProfile == "" {
		return
	}
	dry := &class.DryRun{EC2: e.opts.Clients.EC2, Calls: e.sources.Calls, Cluster: e.opts.Cluster}
	err := dry.Try(ctx, of, e.facts)
	var refused *class.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Denied:
		e.found(CloudPermissionDenied, "ec2nodeclass/"+of.Name, roleFix, "%s", refused.Message)
	case refused != nil:
		e.found(LaunchRefused, "ec2nodeclass/"+of.Name, "correct the class as described in the message", "%s", refused.Message)
	default:
		e.asked(err, "ec2:RunInstances")
	}
}

// mostStrangers is the maximum number of instances that are read individually.
const mostStrangers = 20

// machines searches for instances of claims that have lost the tags by which the cluster's instances are found.
func (e *examination) machines(ctx context.Context) {
	if _, unknown := e.findings[[2]string{ClusterUnknown, "cluster/" + e.opts.Cluster}]; unknown {
		return // instances are found by the name of the cluster
	}
	machines, err := e.launcher.Machines(ctx)
	if !e.asked(err, "ec2:DescribeInstances") {
		return
	}
	listed := map[string]bool{}
	for i := range machines {
		listed[machines[i].ProviderID] = true
	}
	looked := 0
	for i := range e.claims {
		c := &e.claims[i]
		if id := c.Status.ProviderID; id == "" || listed[id] || c.DeletionTimestamp != nil || looked == mostStrangers {
			continue
		}
		looked++
		if _, err := e.launcher.Machine(ctx, c.Status.ProviderID); err != nil {
			continue // the instance is gone, which the controller detects too, or is not shown yet
		}
		id, _ := instanceOf(c.Status.ProviderID)
		e.found(TagsMissing, "nodeclaim/"+c.Name,
			fmt.Sprintf("aws ec2 create-tags --resources %s --tags Key=%s,Value=%s Key=%s,Value=%s Key=%s,Value=%s", id,
				awsv1.TagCluster, e.opts.Cluster, awsv1.TagNodePool,
				c.Labels[karpv1.LabelNodePool], awsv1.TagNodeClass, c.Spec.NodeClassRef.Name),
			"its instance %s has lost a tag by which the cluster's instances are found (%s, %s, %s): the controller treats it as gone",
			id, awsv1.TagCluster, awsv1.TagNodePool, awsv1.TagNodeClass)
	}
}
