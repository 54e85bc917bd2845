"""Blobs that move: an image, a surface and their list per dump, in the binary formats of VTK."""

import math
from pathlib import Path

import vtk

SIDE, DUMPS = 72, 16
collection = []
for dump in range(DUMPS):
    source = vtk.vtkRTAnalyticSource()
    source.SetWholeExtent(0, SIDE, 0, SIDE, 0, SIDE)
    source.SetCenter(SIDE / 2 + 8 * math.sin(dump), SIDE / 2, SIDE / 2 + 8 * math.cos(dump))
    source.SetXFreq(0.6 + 0.05 * dump)
    source.Update()
    image = vtk.vtkXMLImageDataWriter()
    image.SetFileName(f"image_{dump:03}.vti")
    image.SetInputConnection(source.GetOutputPort())
    image.SetDataModeToAppended()
    image.EncodeAppendedDataOff()
    image.SetCompressorTypeToZLib()
    image.Write()
    surface = vtk.vtkContourFilter()
    surface.SetInputConnection(source.GetOutputPort())
    surface.GenerateValues(3, 90, 210)
    poly = vtk.vtkXMLPolyDataWriter()
    poly.SetFileName(f"surface_{dump:03}.vtp")
    poly.SetInputConnection(surface.GetOutputPort())
    poly.SetDataModeToAppended()
    poly.EncodeAppendedDataOff()
    poly.SetCompressorTypeToNone()
    poly.Write()
    if dump % 4 == 3:
        legacy = vtk.vtkPolyDataWriter()
        legacy.SetFileName(f"legacy_{dump:03}.vtk")
        legacy.SetInputConnection(surface.GetOutputPort())
        legacy.SetFileTypeToASCII()
        legacy.Write()
    collection.append(f'<DataSet timestep="{dump}" file="surface_{dump:03}.vtp"/>\n')
    with Path("blobs.pvd").open("w") as file:
        file.write('<VTKFile type="Collection"><Collection>\n')
        file.writelines(collection)
        file.write("</Collection></VTKFile>\n")
