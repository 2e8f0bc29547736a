"""Networks of the papers, as functions for `FactoryEncoder`: from timm and torchvision where they have them.

| function | network (paper) | images | Φ | parameters |
|---|---|---|---|---|
| `small:mlp` | 784–1024–512–10 (B) | 1×28×28 | 512 | 1,336,842 |
| `small:mlp`, inputs 3072, widths 2048 and 1024 | 3072–2048–1024–10 (B) | 3×32×32 | 1024 | 8,408,074 |
| `small:cnn` | "custom CNN", ours (B) | 1×28×28 | 128 | 206,922 |
| `small:cnn`, channels 3, size 32, widths 32, 64, 128, hidden 256 | the same (B) | 3×32×32 | 256 | 620,362 |
| `vit:vit` | ViT, patch 7, dimension 64 (B) | 1×28×28 | 64 | 305,034 |
| `vit:vit`, channels 3, size 32, patch 8, dim 192, heads 3 | patch 8, dimension 192 (B) | 3×32×32 | 192 | 2,712,010 |
| `cifar:resnet20` | ResNet-20 (B) | 3×32×32 | 64 | 269,722 |
| `cifar:resnet18` | ResNet-18 with a CIFAR stem (A) | 3×32×32 | 512 | 11,173,962 |
| `cifar:vgg16` | VGG-16 with batch normalisation, one linear layer (A) | 3×32×32 | 512 | 14,728,266 |
| `cifar:wrn28_10` | WRN-28-10 (A) | 3×32×32 | 640 | 36,479,194 |

A is *Beyond Local Linearity*, B is *Neural Expansion*. All take `classes`; those of `cifar` take `width`, a factor of
all channels. `geoframe.models.published` has each of them as an encoder, and Imagenette's pretrained ones.
"""
