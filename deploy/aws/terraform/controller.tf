locals {
  trust = {
    pod-identity = jsonencode({
      Version = "2012-10-17"
      Statement = [{
        Effect    = "Allow"
        Principal = { Service = "pods.eks.amazonaws.com" }
        Action    = ["sts:AssumeRole", "sts:TagSession"]
        Condition = { StringEquals = {
          "aws:RequestTag/eks-cluster-name"           = var.cluster_name
          "aws:RequestTag/kubernetes-namespace"       = var.namespace
          "aws:RequestTag/kubernetes-service-account" = var.service_account
        } }
      }]
    })
    irsa = jsonencode({
      Version = "2012-10-17"
      Statement = [{
        Effect    = "Allow"
        Principal = { Federated = "arn:${local.partition}:iam::${local.account}:oidc-provider/${var.oidc_provider}" }
        Action    = "sts:AssumeRoleWithWebIdentity"
        Condition = { StringEquals = {
          "${var.oidc_provider}:aud" = "sts.amazonaws.com"
          "${var.oidc_provider}:sub" = "system:serviceaccount:${var.namespace}:${var.service_account}"
        } }
      }]
    })
  }

  # What the controller may do: policy.json, a copy of docs/aws-iam-policy.json, in parts, because a managed policy has 6,144
  # characters at most, and the statements of policy-optional.json that are asked for.
  filled = {
    PARTITION = local.partition
    REGION    = data.aws_region.current.id
    ACCOUNT   = local.account
    CLUSTER   = var.cluster_name
    NODE_ROLE = aws_iam_role.node.name
    QUEUE     = aws_sqs_queue.interruption.name
  }
  statements = concat(
    jsondecode(templatefile("${path.module}/policy.json", local.filled)).Statement,
    jsondecode(templatefile("${path.module}/policy-optional.json", local.filled)).Statement,
  )
  always = {
    # generated: begin parts
    NodeLifecycle  = ["LaunchFromWhatIsThere", "LaunchByOwnTemplates", "MakeOnlyWhatIsTagged", "TagWhatIsBeingMade", "NameOwnInstances", "EndOwnInstancesAndTemplates"] # making, tagging and ending instances
    IAMIntegration = ["HandTheNodeRoleToInstances", "MakeTaggedInstanceProfiles", "ChangeOwnInstanceProfiles", "ReadInstanceProfiles", "LookForTheRoleOfSpot", "ListInstanceProfiles"] # the node role and its instance profiles
    Interruption   = ["HearOfInterruptions"] # the queue of notices
    Discovery      = ["ReadEC2", "ReadTheCluster", "ReadImageIDs", "ReadPrices"] # what there is, and what it costs
    # generated: end
  }
  optional = {
    # generated: begin optional
    ZonalShift  = ["ZonalShift"] # zonal shift: --enable-zonal-shift
    Commitments = ["Commitments"] # commitments: --commitments-from-aws
    # generated: end
  }
  parts = merge(local.always, { for name, sids in local.optional : name => sids if contains(var.features, name) })
}

resource "aws_iam_role" "controller" {
  name               = local.names.controller_role
  assume_role_policy = local.trust[var.identity]
  tags               = var.tags
  lifecycle {
    precondition {
      condition     = var.identity != "irsa" || var.oidc_provider != ""
      error_message = "identity irsa needs oidc_provider: aws eks describe-cluster --name CLUSTER --query cluster.identity.oidc.issuer, without https://."
    }
  }
}

resource "aws_iam_policy" "controller" {
  for_each    = local.parts
  name_prefix = "KarpenterController${each.key}-"
  description = "karpenter in the cluster ${var.cluster_name}"
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [for s in local.statements : s if contains(each.value, s.Sid)]
  })
  tags = var.tags
}

resource "aws_iam_role_policy_attachment" "controller" {
  for_each   = aws_iam_policy.controller
  role       = aws_iam_role.controller.name
  policy_arn = each.value.arn
}

resource "aws_eks_pod_identity_association" "controller" {
  count           = var.identity == "pod-identity" ? 1 : 0
  cluster_name    = var.cluster_name
  namespace       = var.namespace
  service_account = var.service_account
  role_arn        = aws_iam_role.controller.arn
  tags            = var.tags
}
